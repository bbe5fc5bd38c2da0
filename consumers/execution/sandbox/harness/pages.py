"""Lays a fork server's memory out so that forking it is cheap.

What a child costs is memory for the most part: fork copies the page tables of
the fork server, the child copies each page that it changes or maps each piece
of Python's code that it runs, and its end undoes it all. So modules that are
loaded but not used are not free, unless their memory is

    in few mappings: each is copied by itself, and every extension module brings
    five (join);
    in huge pages, of which a page table has one entry instead of 512 (gather,
    collapse), and those of Python's code are not mapped again by every child
    (settle_code);
    apart from what fork server and child change: one byte written to a huge page
    makes 512 pages of it (part), and one to a page of its own makes a copy (fill).

Reading an object changes it, for it counts who holds it.

All of it is best effort: where the kernel refuses, a child costs more. It makes
code and constants writable or executable that need not be; to who runs any code
that it likes, that gives nothing.
"""

import bisect
import ctypes
import gc
import os

HUGE = 2 << 20
PIECE, LARGEST_PIECE = 256 << 10, 1 << 20  # Python takes its memory in pieces of either size
POOL, POOL_HEADER = 16 << 10, 48  # of these, objects of one size share one
BLOCK = 32 << 10  # for malloc: less than what it takes from elsewhere than the heap
MOST_TAKEN = 64 << 20
GATHERED = 7  # huge pages: what the preloaded modules need
READ, WRITE, EXECUTE = 1, 2, 4
MAP_PRIVATE_ANONYMOUS = 0x22
MREMAP_MAYMOVE_FIXED = 3
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
NOWHERE = ctypes.c_void_p(-1).value

old = []  # of objects that are never let go

libc = ctypes.CDLL(None)
for _name, _result, *_arguments in (
    ("mmap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
    ("munmap", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    ("mprotect", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("madvise", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("malloc", ctypes.c_void_p, ctypes.c_size_t),
    ("sbrk", ctypes.c_void_p, ctypes.c_ssize_t),
    ("mremap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p),
):
    if hasattr(libc, _name):
        getattr(libc, _name).restype = _result
        getattr(libc, _name).argtypes = _arguments
ctypes.pythonapi.PyObject_Malloc.restype = ctypes.c_void_p
ctypes.pythonapi.PyObject_Malloc.argtypes = (ctypes.c_size_t,)


def gather(maps):
    """Has the objects to come lie together, in whole huge pages. Returns what keeps
    that memory.

    Python takes memory piece by piece, wherever there is room; asked for much
    at once it gets it in a row. One object in a piece keeps the piece."""
    if maps is None:
        return []
    pieces = {}
    blocks = [None] * (GATHERED * HUGE // 400)  # made once: a list that grows would take room in between
    above = align()
    for number in range(len(blocks)):
        blocks[number] = block = bytes(400)
        pieces.setdefault(id(block) // PIECE, block)
    libc.munmap(*above)
    by_page = {}
    for number, block in pieces.items():
        by_page.setdefault(number * PIECE // HUGE, []).append(block)
    lift()
    return [page for page in by_page.values() if len(page) == HUGE // PIECE]


def lift():
    """Has malloc go on in another huge page, and returns where that begins."""
    first = libc.malloc(BLOCK)
    return take(libc.malloc, BLOCK, lambda address: address // HUGE != first // HUGE) // HUGE * HUGE


def align():
    """Takes the room between the memory that Python gets next and the huge page
    above that, so that it ends where that begins. Returns that room: it is asked
    for from above."""
    start = libc.mmap(None, LARGEST_PIECE, 0, MAP_PRIVATE_ANONYMOUS, -1, 0)
    libc.munmap(start, LARGEST_PIECE)
    size = (start + LARGEST_PIECE) % HUGE or HUGE
    return libc.mmap(None, size, 0, MAP_PRIVATE_ANONYMOUS, -1, 0), size


def open_maps():
    """Returns what the others read: a file that is out of sight later. None on
    another kind of system."""
    try:
        return open("/proc/self/maps")
    except OSError:
        return None


def part(maps):
    """Has the objects to come lie apart from those that are there. Returns the
    bounds of the memory of those, start after end after start."""
    if maps is None:
        return []
    there, heap_end = bounds(maps)
    fill(lambda address: bisect.bisect(there, address) % 2 == 0)
    heap = lift()
    if heap_end in there:
        there[there.index(heap_end)] = heap
    return there


def bounds(maps):
    """Returns the bounds of what is there to write to, and the end of malloc's heap."""
    found = [row for row in mappings(maps) if row[2] == "rw-p"]
    heap_end = max((end for _, end, _, name in found if name == "[heap]"), default=0)
    return [bound for start, end, _, _ in found for bound in (start, end)], heap_end


def fill(is_new):
    """Takes the room for small objects, whatever its size, that others left. None
    of those should go afterwards: something new would take its place."""
    gc.collect()  # what Python keeps of them for later use goes
    for size in range(512, 0, -16):
        take(ctypes.pythonapi.PyObject_Malloc, size, is_new)
    if hasattr(libc, "gnu_get_libc_version"):
        end = libc.sbrk(0)
        top = take(libc.malloc, BLOCK, lambda _: libc.sbrk(0) != end)
        for size in [BLOCK >> halved for halved in range(1, 5)] + list(range(1024, 0, -16)):
            take(libc.malloc, size, lambda address: address >= top)
    # And what it kept while that went on is not given to others.
    old.extend((tuple(range(size)), [], {}, float(size)) for size in range(1, 20) for _ in range(4))


def take(allocate, size, enough):
    """Takes memory of a size until that has an address that is enough, which it
    returns. Another kind of allocator may never give such."""
    for _ in range(MOST_TAKEN // size):
        address = allocate(size) or 0
        if enough(address):
            break
    return address


def settle(maps, cold):
    """Call it when everything is loaded. cold is what part returned."""
    if maps is None:
        return
    with maps:
        try:
            fill(begins_pool)
            collapse(mappings(maps), cold)
            join(mappings(maps))
            settle_code(mappings(maps))
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
    """Turns what part found into huge pages (Linux 6.1), as far as it makes such."""
    for start, end, protection, name in found:
        if protection == "rw-p" and name in ("", "[heap]"):
            for page in range((start + HUGE - 1) // HUGE * HUGE, end // HUGE * HUGE, HUGE):
                if is_within(cold, page, page + HUGE):
                    libc.madvise(page, HUGE, MADV_HUGEPAGE)
                    libc.madvise(page, HUGE, MADV_COLLAPSE)


def is_within(cold, start, end):
    return bisect.bisect(cold, start) % 2 == 1 and bisect.bisect(cold, start) == bisect.bisect_left(cold, end)


def join(found):
    """Makes one mapping of a library's code and constants, and one of its data:
    the kernel joins neighbours that are protected alike."""
    libraries = {name for _, _, protection, name in found if protection == "r-xp" and name.startswith("/")}
    for (start, end, protection, name), (_, _, after, next_name) in zip(found, found[1:]):
        if name in libraries and protection == "r--p":
            data = after == "rw-p" and next_name == name
            libc.mprotect(start, end - start, READ | WRITE if data else READ | EXECUTE)


def settle_code(found):
    """Puts a copy of Python's code, in huge pages, in the place of the file's."""
    inside = ctypes.cast(ctypes.pythonapi.PyEval_EvalCode, ctypes.c_void_p).value
    for start, end, protection, _ in found:
        if start <= inside < end and protection == "r-xp" and end - start >= HUGE:
            break
    else:
        return
    size = end - start
    room = libc.mmap(None, size + 2 * HUGE, READ | WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0)
    if room == NOWHERE:
        return
    copy = (room + HUGE - 1) // HUGE * HUGE + start % HUGE  # huge pages lie alike in both
    libc.madvise(copy, size, MADV_HUGEPAGE)
    ctypes.memmove(copy, start, size)
    if libc.mprotect(copy, size, READ | EXECUTE) == 0:
        libc.mremap(copy, size, size, MREMAP_MAYMOVE_FIXED, start)  # at once: this code runs there
    libc.munmap(room, size + 2 * HUGE)
