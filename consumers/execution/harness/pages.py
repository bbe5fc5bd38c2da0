"""Lays a fork server's memory out so that forking it is cheap.

What a child costs is memory for the most part: fork copies the page tables of
the fork server, the child copies each page that it changes or maps each piece
of Python's code that it runs, and its end undoes it all. So modules that are
loaded but not used are not free, unless their memory is

    in few mappings: each is copied by itself, and every extension module brings
    five (join);
    in huge pages, of which a page table has one entry instead of 512 (gather,
    collapse), and those of Python's code are not mapped again by every child
    (settle_code).

All of it is best effort: where the kernel refuses, a child costs more. It makes
code and constants writable or executable that need not be; to who runs any code
that it likes, that gives nothing.
"""

import ctypes
import os

HUGE = 2 << 20
PIECE = 256 << 10  # Python takes its memory in pieces of this size or four times it
GATHERED = 6  # huge pages: what the preloaded modules need
READ, WRITE, EXECUTE = 1, 2, 4
MAP_PRIVATE_ANONYMOUS = 0x22
MREMAP_MAYMOVE_FIXED = 3
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
NOWHERE = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None)
for _name, _result, *_arguments in (
    ("mmap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
    ("munmap", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    ("mprotect", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("madvise", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    ("mremap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p),
):
    if hasattr(libc, _name):
        getattr(libc, _name).restype = _result
        getattr(libc, _name).argtypes = _arguments


def gather():
    """Has the small objects to come lie together, in whole huge pages. Returns
    what keeps that memory.

    Python takes memory piece by piece, wherever there is room; asked for much
    at once it gets it in a row. One object in a piece keeps the piece."""
    pieces = {}
    blocks = [None] * ((GATHERED + 1) * HUGE // 400)  # made once: a list that grows would take room in between
    for number in range(len(blocks)):
        blocks[number] = block = bytes(400)
        pieces.setdefault(id(block) // PIECE, block)
    by_page = {}
    for number, block in pieces.items():
        by_page.setdefault(number * PIECE // HUGE, []).append(block)
    return [page for page in by_page.values() if len(page) == HUGE // PIECE]


def open_maps():
    """Returns what settle reads: a file that is out of sight later."""
    try:
        return open("/proc/self/maps")
    except OSError:
        return None


def settle(maps):
    """Call it when everything is loaded."""
    if maps is None:
        return
    with maps:
        try:
            collapse(mappings(maps))
            join(mappings(maps))
            settle_code(mappings(maps))
        except (AttributeError, OSError, ValueError):
            pass  # another kind of system


def mappings(maps):
    """Returns (start, end, protection, name) of each mapping."""
    maps.seek(0)
    found = []
    for line in maps.read().splitlines():
        fields = line.split(None, 5)
        start, end = (int(text, 16) for text in fields[0].split("-"))
        found.append((start, end, fields[1], fields[5] if len(fields) > 5 else ""))
    return found


def collapse(found):
    """Turns memory that Python and the C library took for objects into huge
    pages (Linux 6.1)."""
    for start, end, protection, name in found:
        start, end = (start + HUGE - 1) // HUGE * HUGE, end // HUGE * HUGE
        if protection == "rw-p" and name in ("", "[heap]") and start < end:
            libc.madvise(start, end - start, MADV_HUGEPAGE)
            libc.madvise(start, end - start, MADV_COLLAPSE)


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
