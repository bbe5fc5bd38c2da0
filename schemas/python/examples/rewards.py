"""The rewards of Code-A1 as a stage in Python, in place of `codea1 stage rewards`:
python3 rewards.py nats://127.0.0.1:4222 RUN [TOKEN]"""

import asyncio
import math
import sys

import codea1_tap

FAILED = ("fail", "raised", "timeout")
TERMS = ("reward", "advantage", "r_val", "r_adv", "penalty", "pass", "pass_new", "fail_new", "pass_hist", "fail_hist")


def suite_reward(k, answer, suite):
    if answer.get("failure") or suite.get("failure"):  # of the sandbox: left out of all means
        return {**dict.fromkeys(TERMS, 0.0), "valid": 0, "invalid": 0, "masked": True}
    r, tests, hist = dict.fromkeys(TERMS, 0.0), suite.get("tests", []), answer.get("hist", [])
    kept = [t for t in tests if t["status"] == "kept"]
    r["valid"], r["invalid"] = len(kept), len(tests) - len(kept) + sum(t.get("wrong", False) for t in kept)
    r["r_val"] = max(0.0, min(r["valid"] / k, 1 - r["invalid"] / k, 1.0))
    r["penalty"] = suite["unprintable"] / max(1, suite["chars"])
    if answer["loads"]:
        r["pass_new"] = sum(t["verdict"] == "pass" for t in kept) / max(1, len(kept))
        r["fail_new"] = sum(t["verdict"] in FAILED for t in kept[:k]) / k
        r["pass_hist"], r["fail_hist"] = (sum(v in of for v in hist) / max(1, len(hist)) for of in (("pass",), FAILED))
        r["r_adv"] = (r["fail_new"] - r["fail_hist"] + 1) / 2 if kept and hist else r["fail_new"]
        r["pass"] = 0.5 * r["pass_hist"] + 0.5 * r["pass_new"] if kept and hist else r["pass_hist"] + r["pass_new"]
        r["reward"] = 0.5 * r["r_val"] + 0.5 * r["r_adv"]
    return {**r, "reward": r["reward"] - r["penalty"]}


def answer_reward(answer, suites):
    passes = [s["pass"] for s in suites if not s.get("masked")]
    masked = bool(answer.get("failure")) or answer["loads"] and not passes
    reward = 0.0 if masked or not answer["loads"] else total(passes) / len(passes)
    return {"reward": reward, "advantage": 0.0, "loads": answer["loads"] and not answer.get("failure"), "masked": masked}


def total(values):  # like Go's: the sum() of new Pythons rounds in another way
    out = 0.0
    for v in values:
        out += v
    return out


def compare(rewards):
    """Sets the advantages of a set of rewards and returns their deviation, -1 for none."""
    scored = [r for r in rewards if not r.get("masked")]
    mean = total(r["reward"] for r in scored) / max(1, len(scored))
    squares = total((r["reward"] - mean) * (r["reward"] - mean) for r in scored)
    for r in scored:
        r["advantage"] = (r["reward"] - mean) / (math.sqrt(squares / (len(scored) - 1)) + 1e-6) if len(scored) > 1 else r["reward"]
    return math.sqrt(squares / len(scored)) if scored else -1.0


def changes(group):
    """Returns the changes of the Mistake Book: a passed historical test loses a count, a failed new test gains one."""
    loaded = [a for a in group["answers"] if a["loads"] and not a.get("failure")]
    old = [(t["call"], t["expect"], -sum(a["hist"][i] == "pass" for a in loaded)) for i, t in enumerate(group.get("hist", []))]
    new = {}
    for t in (t for a in loaded for s in a["suites"] if not s.get("failure") for t in s.get("tests", [])):
        if t["status"] == "kept" and t["verdict"] in FAILED:
            new[t["call"], t["expect"]] = new.get((t["call"], t["expect"]), 0) + 1
    return [{"call": c, "expect": e, "change": n} for c, e, n in old + [(*test, n) for test, n in new.items()] if n]


def handle(event):
    group, plan = event.payload, event.payload["plan"]
    if plan["purpose"] != "train":
        return None
    test = [[suite_reward(plan["k"], a, s) for s in a.get("suites", [{"failure": "none"}] * plan["n"])] for a in group["answers"]]
    code = [answer_reward(a, suites) for a, suites in zip(group["answers"], test)]
    if all(r["masked"] for r in code):
        drop = {"purpose": "train", "step": plan["step"], "slot": plan["slot"], "groups": plan["groups"]}
        return "group.dropped", {**drop, "stage": "rewards", "reason": "infrastructure"}
    compare(code)
    best, deviations = -1, [compare(suites) for suites in test]
    for m, d in enumerate(deviations):
        if d >= 0 and (best < 0 or d > deviations[best] + 1e-9):
            best = m
    rewarded = {"plan": plan, "recipe": "a1", "alpha": 0.5, "code": code, "test": test, "top_var": best, "deltas": changes(group)}
    return "group.rewarded", {**rewarded, **{name: group[name] for name in ("problem", "code_version", "test_version")}}


if __name__ == "__main__":
    address, run, *token = sys.argv[1:]
    asyncio.run(codea1_tap.work(address, run, "rewards", ["code.executed"], handle, **({"token": token[0]} if token else {})))
