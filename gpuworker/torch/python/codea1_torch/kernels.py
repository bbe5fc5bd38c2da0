"""GPU kernels of decoding and of the loss. Only import this where CUDA is available."""

# Triton's language has no types for a checker.
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x, delta, weight, y, width, eps, HAS_DELTA: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    v = tl.load(x + row + cols, mask=mask, other=0.0)
    if HAS_DELTA:
        v = v + tl.load(delta + row + cols, mask=mask, other=0.0)
        tl.store(x + row + cols, v, mask=mask)
    f = v.to(tl.float32)
    f = f * tl.rsqrt(tl.sum(f * f) / width + eps)
    w = tl.load(weight + cols, mask=mask, other=0.0)
    tl.store(y + row + cols, f.to(w.dtype) * w, mask=mask)


def rms_norm(x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Add delta to x in place, if there is one, and return the normalized sum. x is [rows, width]."""
    y = torch.empty_like(x)
    rows, width = x.shape
    warps = 4 if width <= 4096 else 8
    _rms[(rows,)](x, delta, weight, y, width, eps, HAS_DELTA=delta is not None, BLOCK=triton.next_power_of_2(width), num_warps=warps)
    return y


@triton.jit
def _silu_mul(gate_up, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < width
    gate = tl.load(gate_up + row * 2 * width + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * width + cols, (gate * tl.sigmoid(gate) * up).to(y.dtype.element_ty), mask=mask)


def silu_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up of a joint projection [rows, 2 * width]."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    y = torch.empty(rows, width, device=gate_up.device, dtype=gate_up.dtype)
    _silu_mul[(rows, triton.cdiv(width, 1024))](gate_up, y, width, BLOCK=1024, num_warps=4)
    return y


@triton.jit
def _scatter(
    qkv, q_norm, k_norm, cos, sin, positions, places, queries, keys, values, eps,
    HEADS: tl.constexpr, KV: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, QK_NORM: tl.constexpr,
    ROWS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, HALF)[None, :]
    half = SIZE // 2
    mask = (head < HEADS + 2 * KV) & (col < half)
    at = qkv + t * (HEADS + 2 * KV) * SIZE + head * SIZE + col
    raw_a = tl.load(at, mask=mask, other=0.0)
    raw_b = tl.load(at + half, mask=mask, other=0.0)
    a, b = raw_a.to(tl.float32), raw_b.to(tl.float32)
    if QK_NORM:
        scale = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / SIZE + eps)[:, None]
        is_q = head < HEADS
        wa = tl.where(is_q, tl.load(q_norm + col, mask=col < half, other=0.0), tl.load(k_norm + col, mask=col < half, other=0.0))
        wb = tl.where(
            is_q, tl.load(q_norm + half + col, mask=col < half, other=0.0), tl.load(k_norm + half + col, mask=col < half, other=0.0)
        )
        a = ((a * scale).to(raw_a.dtype) * wa).to(tl.float32)
        b = ((b * scale).to(raw_b.dtype) * wb).to(tl.float32)
    position = tl.load(positions + t).to(tl.int64)
    c = tl.load(cos + position * half + col, mask=col < half, other=0.0)
    s = tl.load(sin + position * half + col, mask=col < half, other=0.0)
    ra = (a * c - b * s).to(raw_a.dtype)
    rb = (b * c + a * s).to(raw_b.dtype)
    q = queries + (t * HEADS + head) * SIZE + col
    tl.store(q, ra, mask=mask & (head < HEADS))
    tl.store(q + half, rb, mask=mask & (head < HEADS))
    place = tl.load(places + t).to(tl.int64)
    page, row = place // PAGE, place % PAGE
    is_k = mask & (head >= HEADS) & (head < HEADS + KV)
    k = keys + ((page * KV + head - HEADS) * PAGE + row) * SIZE + col
    tl.store(k, ra, mask=is_k)
    tl.store(k + half, rb, mask=is_k)
    v = values + ((page * KV + head - HEADS - KV) * PAGE + row) * SIZE + col
    tl.store(v, raw_a, mask=mask & (head >= HEADS + KV))
    tl.store(v + half, raw_b, mask=mask & (head >= HEADS + KV))


def scatter_qkv(
    qkv: torch.Tensor,
    q_norm: torch.Tensor | None,
    k_norm: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    places: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    heads: int,
    eps: float,
) -> torch.Tensor:
    """Rotate queries and keys, store keys and values in their pages, and return the queries.

    qkv is [T, (heads + 2 kv) * size], keys and values are [pages, kv, page, size]; places holds
    page * page_size + row for each token. The result is [T, heads, size].
    """
    _, kv, page, size = keys.shape
    rows = qkv.shape[0]
    queries = torch.empty(rows, heads, size, device=qkv.device, dtype=qkv.dtype)
    _scatter[(rows,)](
        qkv, q_norm, k_norm, cos, sin, positions, places, queries, keys, values, eps,
        HEADS=heads, KV=kv, SIZE=size, PAGE=page, QK_NORM=q_norm is not None,
        ROWS=triton.next_power_of_2(heads + 2 * kv), HALF=triton.next_power_of_2(size // 2), num_warps=4,
    )  # fmt: skip
    return queries


@triton.jit
def _attend(
    q, keys, values, table, lengths, out, table_width, scale,
    KV: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    lane, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    row = tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, COLS)[None, :]
    slot = tl.arange(0, PAGE)
    inside = (row < GROUP) & (col < SIZE)
    base = (lane * KV + head) * GROUP * SIZE
    query = tl.load(q + base + row * SIZE + col, mask=inside, other=0.0)
    length = tl.load(lengths + lane)
    top = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, COLS], tl.float32)
    for block in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table + lane * table_width + block).to(tl.int64)
        at = (page * KV + head) * PAGE * SIZE + slot[:, None] * SIZE + col
        live = block * PAGE + slot < length
        load = live[:, None] & (col < SIZE)
        k = tl.load(keys + at, mask=load, other=0.0)
        score = tl.dot(query, tl.trans(k), input_precision=PRECISION) * scale
        score = tl.where(live[None, :], score, -1e30)
        higher = tl.maximum(top, tl.max(score, 1))
        p = tl.exp(score - higher[:, None])
        fade = tl.exp(top - higher)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(values + at, mask=load, other=0.0)
        acc = acc * fade[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        top = higher
    tl.store(out + base + row * SIZE + col, (acc / total[:, None]).to(out.dtype.element_ty), mask=inside)


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Attend from one query per lane to the first tokens in the lane's pages.

    q is [lanes, heads, size], table [lanes, pages per lane]. The result is [lanes, heads * size].
    """
    lanes, heads, size = q.shape
    _, kv, page, _ = keys.shape
    out = torch.empty(lanes, heads * size, device=q.device, dtype=q.dtype)
    _attend[(lanes, kv)](
        q, keys, values, table, lengths, out, table.stride(0), size**-0.5,
        KV=kv, GROUP=heads // kv, SIZE=size, PAGE=page, ROWS=max(16, triton.next_power_of_2(heads // kv)),
        COLS=max(16, triton.next_power_of_2(size)), PRECISION="ieee" if q.dtype == torch.float32 else "tf32",
        num_warps=2, num_stages=2,
    )  # fmt: skip
    return out


@triton.jit
def _mix(x):
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    x ^= x >> 16
    return x


@triton.jit
def _choose(
    logits, seeds, positions, temperature, top_p, top_k, token_out, log_prob_out,
    vocabulary, FILTER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(0).to(tl.int64)
    z = logits + lane * vocabulary
    scale = 1.0 / tl.load(temperature)
    cols = tl.arange(0, BLOCK)
    low = -float("inf")
    if FILTER:
        low = _threshold(z, scale, tl.load(top_p), tl.load(top_k), vocabulary, BLOCK)
    key = _mix(tl.load(seeds + 2 * lane).to(tl.uint32))
    key = _mix(key ^ tl.load(seeds + 2 * lane + 1).to(tl.uint32))
    key = _mix(key ^ tl.load(positions + lane).to(tl.uint32))
    most = -float("inf")
    total = tl.zeros([BLOCK], tl.float32)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    best_z = tl.zeros([BLOCK], tl.float32)
    best_id = tl.zeros([BLOCK], tl.int32)
    for at in range(0, vocabulary, BLOCK):
        ids = at + cols
        x = tl.load(z + ids, mask=ids < vocabulary, other=-float("inf")).to(tl.float32) * scale
        higher = tl.maximum(most, tl.max(x, 0))
        total = total * tl.exp(most - higher) + tl.exp(x - higher)
        most = higher
        bits = _mix(_mix(ids.to(tl.uint32) ^ key) + key)
        # Exponential variate -log(1 - v) with v in (0, 1); a series keeps the digits of a small v.
        v = (bits.to(tl.float32) + 0.5) * 2.3283064365386963e-10
        e = tl.where(v < 0.01, v * (1.0 + v * (0.5 + v * (1.0 / 3.0))), -tl.log(tl.maximum(1.0 - v, 1e-9)))
        score = tl.where(x >= low, x - tl.log(e), -float("inf"))
        better = score > best
        best = tl.where(better, score, best)
        best_z = tl.where(better, x, best_z)
        best_id = tl.where(better, ids, best_id)
    log_sum = most + tl.log(tl.sum(total, 0))
    winner = tl.argmax(best, 0)
    pick = cols == winner
    tl.store(token_out + lane, tl.sum(tl.where(pick, best_id, 0), 0))
    log_prob = tl.sum(tl.where(pick, best_z, 0.0), 0) - log_sum
    # A comparison with NaN is false, so NaN stays.
    tl.store(log_prob_out + lane, tl.where(log_prob > 0, 0.0, log_prob))


@triton.jit
def _threshold(z, scale, top_p, top_k, vocabulary, BLOCK: tl.constexpr):
    """The largest value t such that the tokens of at least t satisfy top-k, and then top-p."""
    cols = tl.arange(0, BLOCK)
    highest = tl.full([BLOCK], -float("inf"), tl.float32)
    for at in range(0, vocabulary, BLOCK):
        ids = at + cols
        highest = tl.maximum(highest, tl.load(z + ids, mask=ids < vocabulary, other=-float("inf")).to(tl.float32) * scale)
    top = tl.max(highest, 0)
    lo, hi = top - 60.0, top
    if top_k > 0:
        for _ in range(32):
            middle = 0.5 * (lo + hi)
            count = tl.zeros([BLOCK], tl.int32)
            for at in range(0, vocabulary, BLOCK):
                ids = at + cols
                x = tl.load(z + ids, mask=ids < vocabulary, other=-float("inf")).to(tl.float32) * scale
                count += (x >= middle).to(tl.int32)
            enough = tl.sum(count, 0) >= top_k
            lo = tl.where(enough, middle, lo)
            hi = tl.where(enough, hi, middle)
    floor = lo
    mass = tl.zeros([BLOCK], tl.float32)
    for at in range(0, vocabulary, BLOCK):
        ids = at + cols
        x = tl.load(z + ids, mask=ids < vocabulary, other=-float("inf")).to(tl.float32) * scale
        mass += tl.where(x >= floor, tl.exp(x - top), 0.0)
    goal = top_p * tl.sum(mass, 0)
    hi = top
    if top_p < 1.0:
        for _ in range(32):
            middle = 0.5 * (lo + hi)
            mass = tl.zeros([BLOCK], tl.float32)
            for at in range(0, vocabulary, BLOCK):
                ids = at + cols
                x = tl.load(z + ids, mask=ids < vocabulary, other=-float("inf")).to(tl.float32) * scale
                mass += tl.where(x >= middle, tl.exp(x - top), 0.0)
            enough = tl.sum(mass, 0) >= goal
            lo = tl.where(enough, middle, lo)
            hi = tl.where(enough, hi, middle)
    return lo


def choose(
    logits: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    temperature: torch.Tensor,
    top_p: torch.Tensor,
    top_k: torch.Tensor,
    filtered: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a token per lane; see choosing.choose, which computes the same on any device."""
    lanes, vocabulary = logits.shape
    tokens = torch.empty(lanes, device=logits.device, dtype=torch.int64)
    log_probs = torch.empty(lanes, device=logits.device, dtype=torch.float32)
    _choose[(lanes,)](
        logits, seeds, positions, temperature, top_p, top_k, tokens, log_probs, vocabulary,
        FILTER=filtered, BLOCK=2048, num_warps=4,
    )  # fmt: skip
    return tokens, log_probs


@triton.jit
def _score(logits, targets, log_probs, entropies, vocabulary, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    z = logits + row * vocabulary
    cols = tl.arange(0, BLOCK)
    most = -float("inf")
    total = tl.zeros([BLOCK], tl.float32)
    weighted = tl.zeros([BLOCK], tl.float32)  # sum of exp(x - most) * x
    for at in range(0, vocabulary, BLOCK):
        ids = at + cols
        mask = ids < vocabulary
        x = tl.load(z + ids, mask=mask, other=-float("inf")).to(tl.float32) * scale
        higher = tl.maximum(most, tl.max(x, 0))
        fade, e = tl.exp(most - higher), tl.exp(x - higher)
        total = total * fade + e
        weighted = weighted * fade + tl.where(mask, e * tl.where(mask, x, 0.0), 0.0)
        most = higher
    mass = tl.sum(total, 0)
    log_sum = most + tl.log(mass)
    target = tl.load(targets + row)
    tl.store(log_probs + row, tl.load(z + target).to(tl.float32) * scale - log_sum)
    tl.store(entropies + row, log_sum - tl.sum(weighted, 0) / mass)


@triton.jit
def _slopes(logits, targets, log_probs, slopes, out, vocabulary, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    ids = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = ids < vocabulary
    target = tl.load(targets + row)
    log_sum = tl.load(logits + row * vocabulary + target).to(tl.float32) * scale - tl.load(log_probs + row)
    x = tl.load(logits + row * vocabulary + ids, mask=mask, other=-float("inf")).to(tl.float32) * scale
    slope = tl.load(slopes + row) * scale
    d = slope * ((ids == target).to(tl.float32) - tl.exp(x - log_sum))
    tl.store(out + row * vocabulary + ids, d.to(out.dtype.element_ty), mask=mask)


def score(logits: torch.Tensor, targets: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-prob of the target and entropy of each row, in nats."""
    rows, vocabulary = logits.shape
    log_probs = torch.empty(rows, device=logits.device, dtype=torch.float32)
    entropies = torch.empty_like(log_probs)
    _score[(rows,)](logits, targets, log_probs, entropies, vocabulary, 1 / temperature, BLOCK=2048, num_warps=8)
    return log_probs, entropies


def logit_gradient(
    logits: torch.Tensor,
    targets: torch.Tensor,
    log_probs: torch.Tensor,
    slopes: torch.Tensor,
    temperature: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return the gradient by the logits, given the derivative of the loss by each log-prob."""
    rows, vocabulary = logits.shape
    out = torch.empty(rows, vocabulary, device=logits.device, dtype=dtype)
    grid = (rows, triton.cdiv(vocabulary, 4096))
    _slopes[grid](logits, targets, log_probs, slopes, out, vocabulary, 1 / temperature, BLOCK=4096, num_warps=8)
    return out
