# Scans texts with bandit. The texts are parsed and never run. Comments that switch the
# scanner off have no effect.
import ast
import logging
import os

logging.disable(logging.CRITICAL)  # bandit describes failed scans there

# An answer runs as text, so its own encoding line has no effect. Bandit reads a file: in
# another encoding, UTF-7 for example, it would scan another program.
FIRST_LINE = "# coding: utf-8\n"


def parses(text):
    try:
        ast.parse(text)
    except Exception:
        return False
    return True


def version():
    import bandit
    from bandit.core import config, manager

    return bandit.__version__


def scan(text):
    from bandit.core import config, manager

    with open("answer.py", "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(FIRST_LINE + text)
    try:
        scanner = manager.BanditManager(config.BanditConfig(), "file", ignore_nosec=True)
        scanner.discover_files(["answer.py"])
        scanner.run_tests()
    finally:
        os.remove("answer.py")
    for _, reason in scanner.get_skipped():
        return reason
    if len(scanner.files_list) != 1:
        return "the scanner left the answer out"
    levels = ["LOW", "MEDIUM", "HIGH"]
    found = [i for i in scanner.get_issue_list() if i.severity in levels and i.confidence in levels]
    found.sort(key=lambda i: (-levels.index(i.severity), i.lineno, i.test_id))
    return [(i.test_id, i.severity.lower(), i.confidence.lower(), i.lineno - 1) for i in found]
