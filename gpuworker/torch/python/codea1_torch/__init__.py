"""The torch engine of codea1.

The Go package gpuworker/torch starts `python -m codea1_torch serve` as a child process and sends it requests;
PROTOCOL.md beside that package describes them. Start reading at engine.py, then serve.py.
"""

__version__ = "0.1.0"
