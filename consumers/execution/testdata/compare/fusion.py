"""Runs Python programs the way SandboxFusion's runner does: a temporary directory,
the program as a file in it, a shell that starts Python on that file, a wait with
a time limit, an end to whatever is left of its process tree, the output read,
the directory removed. One event loop, several at a time; no HTTP.

Given a checkout of SandboxFusion it runs the real runner instead.

    fusion.py PYTHON AT_A_TIME [CHECKOUT]

The first line of standard input is a program, a JSON string. Each further line is
a number of runs of it, and is answered with how many succeeded and the CPU seconds
of this process and its children, until end of file.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import tempfile

PYTHON, AT_A_TIME = sys.argv[1], int(sys.argv[2])
TIME_LIMIT = 10


async def run_alike(code):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        with tempfile.NamedTemporaryFile("w", dir=directory, suffix=".py", delete=False) as file:
            file.write(code)
        process = await asyncio.create_subprocess_shell(
            PYTHON + " " + file.name, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd=directory, executable="/bin/bash", env=dict(os.environ))
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), TIME_LIMIT)
        except asyncio.TimeoutError:
            pass
        finally:
            end_tree(process.pid)
        out = await process.stdout.read(1 << 20)
        await process.stderr.read(1 << 20)
        return process.returncode == 0, out.decode()


def end_tree(pid):
    """A process that has ended costs one look."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return
    os.kill(pid, signal.SIGKILL)


def real_runner(checkout):
    sys.path.insert(0, checkout)
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    from sandbox.runners import base, major
    from sandbox.runners.types import CodeRunArgs, CommandRunStatus

    named = tempfile.TemporaryDirectory()  # it runs whatever is called python
    os.symlink(PYTHON, os.path.join(named.name, "python"))
    major.get_python_rt_env = lambda _: {"PATH": named.name + ":" + os.environ["PATH"]}

    async def run(code):
        result = (await major.run_python(CodeRunArgs(code=code, run_timeout=TIME_LIMIT))).run_result
        return result.status == CommandRunStatus.Finished and result.return_code == 0, result.stdout

    return run


def make_runner():
    return real_runner(sys.argv[3]) if len(sys.argv) > 3 else run_alike


def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


async def run_all(run, programs):
    """Returns (succeeded, output) of each."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(program):
        async with places:
            return await run(program)

    return await asyncio.gather(*map(one, programs))


async def main():
    run = make_runner()
    program = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        before = cpu()
        ended = await run_all(run, [program] * int(line))
        print(sum(succeeded for succeeded, _ in ended), cpu() - before, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
