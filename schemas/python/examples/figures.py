"""Prints the figures of the next updates of a running training as a table, or as JSON without pandas:
python3 figures.py nats://tap:PASSWORD@127.0.0.1:4222 RUN [UPDATES]    (train prints the address)"""

import asyncio
import json
import sys

import codea1_tap


async def main(address, run, updates="2"):
    seen = []
    async for event in codea1_tap.events(address, run, ["policy.updated", "code.sampled"]):
        if event.type == "code.sampled":
            print("first tokens of an answer:", event.payload["response_tokens"][0]["tokens"][:8], file=sys.stderr)
            continue
        seen.append(event)
        if len(seen) == int(updates):
            break
    try:
        print(codea1_tap.dataframe(seen)[["time", "role", "version", "metrics.reward_mean", "metrics.entropy"]])
    except ImportError:
        print(json.dumps(codea1_tap.rows(seen)))


asyncio.run(main(*sys.argv[1:]))
