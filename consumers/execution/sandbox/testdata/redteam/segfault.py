"""Reads at address nought."""

import ctypes


def solve(n):
    return ctypes.string_at(0)
