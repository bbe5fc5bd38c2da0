"""Leaves names that are hard to remove: bytes that are no text, dots, the
longest there can be, many links to one file, rings of links."""

import os


def solve(n):
    open("file", "w").close()
    for i in range(200):
        os.link("file", b"\xff\xfe" + bytes([65 + i % 26]) * 200 + str(i).encode())
    for name in ("-rf", "...", " ", "\n", "0", "1", "a" * 255):
        os.mkdir(name)
        os.symlink("..", name + "/up") if len(name) < 250 else None
    os.symlink("/", "root")
    os.symlink("ring", "ring")
    os.chmod("file", 0)
    deep = os.getcwd()
    for _ in range(300):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
        os.chmod(".", 0o500) if _ == 299 else None
