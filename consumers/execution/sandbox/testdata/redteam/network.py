"""Asks the network."""

import socket, urllib.request


def solve(n):
    return urllib.request.urlopen("http://127.0.0.1:8787/", timeout=0.2).read().decode()
