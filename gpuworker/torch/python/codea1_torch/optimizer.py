"""AdamW on float32 master weights, and the places where its state is kept.

All kinds compute the same step with the same kernel. They differ in memory on the device for each weight of a bfloat16
model, without the gradients: 12 bytes where everything is there ("device"), none where the state is in the memory of
the CPU ("cpu"), 6 where the moments have 8 bits ("8bit").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch.optim.adamw import adamw

from .losses import UpdateConfig

CHUNK = 1 << 24  # weights at a time; a multiple of the block and of the kernel's vectors
BLOCK = 256  # weights that share a scale of 8-bit moments


class AdamW:
    """The state on the device of the weights."""

    state_bytes = 12

    def __init__(self, parameters: Sequence[torch.Tensor], wide: torch.dtype) -> None:
        self.steps = 0
        self._parameters = [p.detach() for p in parameters]
        self._wide = wide
        self.masters = [p if p.dtype == wide else self._copied(p) for p in self._parameters]
        self._make_moments()

    def _copied(self, parameter: torch.Tensor) -> torch.Tensor:
        return parameter.to(self._wide)

    def _make_moments(self) -> None:
        self._first = [torch.zeros_like(m) for m in self.masters]
        self._second = [torch.zeros_like(m) for m in self.masters]

    def moments(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the moments of a parameter, in its shape."""
        return self._first[index], self._second[index]

    def set_moments(self, index: int, first: torch.Tensor, second: torch.Tensor) -> None:
        self._first[index].copy_(first)
        self._second[index].copy_(second)

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor], config: UpdateConfig) -> None:
        """Take a step and copy the masters into the parameters. Only matrices decay."""
        for matrices in (True, False):
            chosen = [i for i, m in enumerate(self.masters) if (m.dim() == 2) == matrices]
            parts = ([values[i] for i in chosen] for values in (self.masters, gradients, self._first, self._second))
            self._apply(*parts, config=config, decays=matrices)
        copied = [i for i, m in enumerate(self.masters) if m is not self._parameters[i]]
        if copied:
            torch._foreach_copy_([self._parameters[i] for i in copied], [self.masters[i] for i in copied])
        self.steps += 1

    def _apply(self, *parts: list[torch.Tensor], config: UpdateConfig, decays: bool) -> None:
        masters, gradients, first, second = parts
        if not masters:
            return
        adamw(
            masters,
            gradients,
            first,
            second,
            [],
            [torch.tensor(float(self.steps), device=m.device) for m in masters],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=config.beta1,
            beta2=config.beta2,
            lr=config.learning_rate,
            weight_decay=config.weight_decay if decays else 0.0,
            eps=config.epsilon,
        )

    def _chunks(self) -> Iterator[tuple[int, slice, bool]]:
        """Yield index of a parameter, range of its flat weights, and whether it decays."""
        for i, p in enumerate(self._parameters):
            for rows in _ranges(p.numel()):
                yield i, rows, p.dim() == 2


class OffloadedAdamW(AdamW):
    """The state in pinned memory of the CPU. A step copies a chunk to the device, computes there, and copies it back."""

    state_bytes = 0

    def __init__(self, parameters: Sequence[torch.Tensor], wide: torch.dtype) -> None:
        super().__init__(parameters, wide)
        # All memory of a step is taken here: a step that fails half-way would leave half of the weights changed.
        device = self._parameters[0].device
        size = min(CHUNK, max(p.numel() for p in self._parameters))
        self._lanes = [_Lane(device, size, wide) for _ in range(2)]

    def _copied(self, parameter: torch.Tensor) -> torch.Tensor:
        return self._pinned(parameter).copy_(parameter)

    def _make_moments(self) -> None:
        self._first = [self._pinned(p).zero_() for p in self._parameters]
        self._second = [self._pinned(p).zero_() for p in self._parameters]

    def _pinned(self, like: torch.Tensor) -> torch.Tensor:
        return torch.empty(like.shape, dtype=self._wide, device="cpu", pin_memory=like.is_cuda)

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor], config: UpdateConfig) -> None:
        for lane in self._lanes:
            lane.begin()
        for k, (i, rows, decays) in enumerate(self._chunks()):
            lane = self._lanes[k % len(self._lanes)]
            parameter = self._parameters[i].view(-1)[rows]
            kept = [state[i].view(-1)[rows] for state in (self._first, self._second, self.masters)]
            streamed = kept if self.masters[i] is not self._parameters[i] else kept[:2]
            with lane.running():
                here = [b[: len(parameter)].copy_(s, non_blocking=True) for b, s in zip(lane.buffers, streamed, strict=False)]
                master = here[2] if len(here) == 3 else parameter
                self._apply([master], [gradients[i].view(-1)[rows]], here[:1], here[1:2], config=config, decays=decays)
                if master is not parameter:
                    parameter.copy_(master)
                for buffer, state in zip(here, streamed, strict=True):
                    state.copy_(buffer, non_blocking=True)
        for lane in self._lanes:
            lane.end()
        self.steps += 1


class _Lane:
    """Buffers of a chunk on the device, and a stream that fills, uses and empties them, beside that of the other lane."""

    def __init__(self, device: torch.device, size: int, dtype: torch.dtype) -> None:
        self.buffers = [torch.empty(size, device=device, dtype=dtype) for _ in range(3)]
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def begin(self) -> None:
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))

    @contextmanager
    def running(self) -> Iterator[None]:
        with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            yield

    def end(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()


class QuantizedAdamW(AdamW):
    """The moments of matrices in 8 bits on the device.

    A value becomes one of the levels of its block: 0, and magnitudes from the largest of the block down over four decades
    (eight for the second moment, which is about the first one squared), each 1.076 times the one below. It is rounded up
    or down at random so that the mean is exact: rounded to the nearest, a second moment that moves by a thousandth at a
    time would never move. The random numbers depend on the step only.
    """

    state_bytes = 6

    def _make_moments(self) -> None:
        device = self._parameters[0].device
        self._signed = _levels(127, 4, device, self._wide)
        self._positive = _levels(255, 8, device, self._wide)
        self._kept: list[tuple[_Blocks | torch.Tensor, _Blocks | torch.Tensor]] = [
            (_Blocks(p, self._signed), _Blocks(p, self._positive))
            if p.dim() == 2
            else (torch.zeros_like(p, dtype=self._wide), torch.zeros_like(p, dtype=self._wide))
            for p in self._parameters
        ]

    def moments(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        shape = self._parameters[index].shape

        def whole(kept: _Blocks | torch.Tensor) -> torch.Tensor:
            if isinstance(kept, torch.Tensor):
                return kept
            # The device has no room for them in float32.
            return torch.cat([kept.read(rows).cpu() for rows in _ranges(shape.numel())]).view(shape)

        first, second = self._kept[index]
        return whole(first), whole(second)

    def set_moments(self, index: int, first: torch.Tensor, second: torch.Tensor) -> None:
        for kept, values in zip(self._kept[index], (first, second), strict=True):
            if isinstance(kept, torch.Tensor):
                kept.copy_(values)
                continue
            for rows in _ranges(values.numel()):
                kept.write(rows, values.reshape(-1)[rows].to(self._parameters[index].device, self._wide), None)

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor], config: UpdateConfig) -> None:
        device = self._parameters[0].device
        generator = torch.Generator(device)
        for k, (i, rows, decays) in enumerate(self._chunks()):
            parameter, master = (values[i].view(-1)[rows] for values in (self._parameters, self.masters))
            first, second = (m.read(rows) if isinstance(m, _Blocks) else m.view(-1)[rows] for m in self._kept[i])
            self._apply([master], [gradients[i].view(-1)[rows]], [first], [second], config=config, decays=decays)
            if self.masters[i] is not self._parameters[i]:
                parameter.copy_(master)
            generator.manual_seed((self.steps << 20) + k)
            for kept, values in zip(self._kept[i], (first, second), strict=True):
                if isinstance(kept, _Blocks):
                    kept.write(rows, values, generator)
        self.steps += 1


class _Blocks:
    """Values in 8 bits: a level each, and a scale for each block."""

    def __init__(self, like: torch.Tensor, levels: torch.Tensor) -> None:
        self._levels = levels
        self._signed = len(levels) == 128
        self._codes = torch.zeros(like.numel(), dtype=torch.uint8, device=like.device)
        self._scales = torch.zeros(-(-like.numel() // BLOCK), dtype=levels.dtype, device=like.device)

    def read(self, rows: slice) -> torch.Tensor:
        codes = self._codes[rows].int()
        values = self._levels[codes & 127 if self._signed else codes]
        if self._signed:
            values = torch.where(codes > 127, -values, values)
        return values * self._spread(rows)

    def write(self, rows: slice, values: torch.Tensor, generator: torch.Generator | None) -> None:
        """Store values; without a generator each becomes the nearest level."""
        padded = torch.nn.functional.pad(values, (0, -len(values) % BLOCK)).view(-1, BLOCK)
        self._scales[rows.start // BLOCK : -(-rows.stop // BLOCK)] = padded.abs().amax(1)
        scales = self._spread(rows)
        shares = torch.where(scales > 0, values.abs() / scales, 0)
        below = (torch.bucketize(shares, self._levels, out_int32=True, right=True) - 1).clamp_(max=len(self._levels) - 2)
        low, high = self._levels[below], self._levels[below + 1]
        noise = torch.full_like(values, 0.5) if generator is None else torch.empty_like(values).uniform_(generator=generator)
        codes = below + ((shares - low) / (high - low) > noise)
        # A second moment of 0 would make an endless step.
        codes = codes + 128 * (values < 0) if self._signed else codes.clamp_(min=1) * (values > 0)
        self._codes[rows] = codes.to(torch.uint8)

    def _spread(self, rows: slice) -> torch.Tensor:
        scales = self._scales[rows.start // BLOCK : -(-rows.stop // BLOCK)]
        return scales.repeat_interleave(BLOCK)[: rows.stop - rows.start]


def _levels(count: int, decades: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return 0 and count levels up to 1, each the same multiple of the one below."""
    exponents = torch.arange(1 - count, 1, dtype=torch.float64) * (decades / (count - 1))
    return torch.cat([torch.zeros(1, dtype=torch.float64), 10**exponents]).to(device, dtype)


def _ranges(count: int) -> Iterator[slice]:
    for first in range(0, count, CHUNK):
        yield slice(first, min(first + CHUNK, count))


KINDS: dict[str, type[AdamW]] = {"device": AdamW, "cpu": OffloadedAdamW, "8bit": QuantizedAdamW}
