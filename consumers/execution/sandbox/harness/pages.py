"""Lays out a fork server's memory so that forking it is cheap.

Most of the cost of a child is memory: fork copies the page tables of the fork
server, the child copies each page that it changes, and its end undoes both. So
memory that a child does not change must have few page table entries, and memory
that it changes must be apart from the rest. A reference to an object changes the
object, because Python counts references in it.

Each means has a function of its own. Its docstring says how much more CPU time a
small job and an answer of a group take without it: BenchmarkRun/plain/isolated and
BenchmarkExecute/M=8,N=8,K=8, user and system time of all processes, medians of 13
to 17 rounds in random order, against all others in use. With gc.freeze alone, a
small job takes 51% more and an answer 41% more. To put a copy of Python's own code
in huge pages in the place of the library's earned 5% and 1%, and is not done.

All of it is best effort: where the kernel refuses, a child costs more.
"""

import bisect
import ctypes
import gc

HUGE = 2 << 20
ARENA, LARGEST_ARENA = 256 << 10, 1 << 20  # Python allocates memory in arenas of one of these sizes
POOL, POOL_HEADER = 16 << 10, 48  # objects of one size share a pool of an arena
BLOCK = 32 << 10  # for malloc: small enough for the heap
MOST_TAKEN = 64 << 20
GATHERED = 7  # huge pages that the preloaded modules need
READ, WRITE, EXECUTE = 1, 2, 4
MAP_PRIVATE_ANONYMOUS = 0x22
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25

old = []  # objects that are never freed

libc = ctypes.CDLL(None)
for _name, _result, *_arguments in (
    ("mmap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
    ("munmap", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    ("mprotect", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("madvise", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("malloc", ctypes.c_void_p, ctypes.c_size_t),
    ("sbrk", ctypes.c_void_p, ctypes.c_ssize_t),
):
    if hasattr(libc, _name):
        getattr(libc, _name).restype = _result
        getattr(libc, _name).argtypes = _arguments
ctypes.pythonapi.PyObject_Malloc.restype = ctypes.c_void_p
ctypes.pythonapi.PyObject_Malloc.argtypes = (ctypes.c_size_t,)


def gather(maps):
    """Makes Python allocate later objects in whole huge pages, for collapse. Returns
    objects that keep the memory. Without it: 33% and 17% more.

    Python allocates arena after arena, at any address. Many arenas at once are
    contiguous, and one object in an arena keeps it."""
    if maps is None:
        return []
    arenas = {}
    blocks = [None] * (GATHERED * HUGE // 400)  # a growing list would take memory in between
    above = align()
    for number in range(len(blocks)):
        blocks[number] = block = bytes(400)
        arenas.setdefault(id(block) // ARENA, block)
    libc.munmap(*above)
    by_page = {}
    for number, block in arenas.items():
        by_page.setdefault(number * ARENA // HUGE, []).append(block)
    lift()
    return [page for page in by_page.values() if len(page) == HUGE // ARENA]


def lift():
    """Makes malloc continue in another huge page. Returns the start of that page."""
    first = libc.malloc(BLOCK)
    return take(libc.malloc, BLOCK, lambda address: address // HUGE != first // HUGE) // HUGE * HUGE


def align():
    """Takes the memory between the next arena and the huge page above it, so that
    the next arena ends at a huge page: the kernel allocates from high to low
    addresses. Returns the taken memory."""
    start = libc.mmap(None, LARGEST_ARENA, 0, MAP_PRIVATE_ANONYMOUS, -1, 0)
    libc.munmap(start, LARGEST_ARENA)
    size = (start + LARGEST_ARENA) % HUGE or HUGE
    return libc.mmap(None, size, 0, MAP_PRIVATE_ANONYMOUS, -1, 0), size


def open_maps():
    """Opens the table of this process's mappings, which is not visible later.
    Returns None on a system without it."""
    try:
        return open("/proc/self/maps")
    except OSError:
        return None


def part(maps):
    """Separates later objects, which children change, from the existing ones.
    Returns the bounds of the memory of the existing ones: start, end, start, end
    and so on. Without it: 20% and 4% more. (One byte written to a huge page makes
    512 small pages of it.)"""
    if maps is None:
        return []
    there, heap_end = bounds(maps)
    fill(lambda address: bisect.bisect(there, address) % 2 == 0)
    heap = lift()
    if heap_end in there:
        there[there.index(heap_end)] = heap
    return there


def bounds(maps):
    """Returns the bounds of the writable memory, and the end of malloc's heap."""
    found = [row for row in mappings(maps) if row[2] == "rw-p"]
    heap_end = max((end for _, end, _, name in found if name == "[heap]"), default=0)
    return [bound for start, end, _, _ in found for bound in (start, end)], heap_end


def fill(is_new):
    """Takes all free memory for small objects until a new address is new enough.
    Then the objects of a child are in pages of their own. Without the call in
    settle: 11% and 5% more."""
    gc.collect()  # frees the objects that Python keeps for reuse
    for size in range(512, 0, -16):
        take(ctypes.pythonapi.PyObject_Malloc, size, is_new)
    if hasattr(libc, "gnu_get_libc_version"):
        end = libc.sbrk(0)
        top = take(libc.malloc, BLOCK, lambda _: libc.sbrk(0) != end)
        for size in [BLOCK >> halved for halved in range(1, 5)] + list(range(1024, 0, -16)):
            take(libc.malloc, size, lambda address: address >= top)
    # Python keeps some freed objects for reuse. These take them.
    old.extend((tuple(range(size)), [], {}, float(size)) for size in range(1, 20) for _ in range(4))


def take(allocate, size, enough):
    """Allocates memory of a size until an address is enough. Returns that address.
    There is a limit, because another allocator may never give such an address."""
    for _ in range(MOST_TAKEN // size):
        address = allocate(size) or 0
        if enough(address):
            break
    return address


def settle(maps, cold):
    """Does the rest when everything is loaded. cold is the result of part."""
    if maps is None:
        return
    with maps:
        try:
            fill(begins_pool)
            collapse(mappings(maps), cold)
            join(mappings(maps))
        except (AttributeError, OSError, ValueError):
            pass  # another kind of system


def begins_pool(address):
    return (address - POOL_HEADER) % POOL == 0


def mappings(maps):
    """Returns (start, end, protection, name) of each mapping."""
    maps.seek(0)
    found = []
    for line in maps.read().splitlines():
        fields = line.split(None, 5)
        start, end = (int(text, 16) for text in fields[0].split("-"))
        found.append((start, end, fields[1], fields[5] if len(fields) > 5 else ""))
    return found


def collapse(found, cold):
    """Turns the memory of the existing objects into huge pages (Linux 6.1): a page
    table has one entry for a huge page instead of 512. Without it: 50% and 23%
    more."""
    for start, end, protection, name in found:
        if protection == "rw-p" and name in ("", "[heap]"):
            for page in range((start + HUGE - 1) // HUGE * HUGE, end // HUGE * HUGE, HUGE):
                if is_within(cold, page, page + HUGE):
                    libc.madvise(page, HUGE, MADV_HUGEPAGE)
                    libc.madvise(page, HUGE, MADV_COLLAPSE)


def is_within(cold, start, end):
    return bisect.bisect(cold, start) % 2 == 1 and bisect.bisect(cold, start) == bisect.bisect_left(cold, end)


def join(found):
    """Joins the mappings of a library's code and constants, and those of its data,
    by giving them the same protection: fork copies each mapping separately, and every
    extension module has five. Without it: 11% and 13% more.

    Constants become executable and read-only data becomes writable. That gives
    nothing to a candidate, which runs any code anyway."""
    libraries = {name for _, _, protection, name in found if protection == "r-xp" and name.startswith("/")}
    for (start, end, protection, name), (_, _, after, next_name) in zip(found, found[1:]):
        if name in libraries and protection == "r--p":
            data = after == "rw-p" and next_name == name
            libc.mprotect(start, end - start, READ | WRITE if data else READ | EXECUTE)
