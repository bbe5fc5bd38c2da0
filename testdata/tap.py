# Prints every event of a running training:
#   pip install msgpack nats-py zstandard
#   python3 tap.py nats://tap:PASSWORD@127.0.0.1:4222 RUN    (train prints the address)
import asyncio, sys
import msgpack, nats, zstandard

async def main(address, run):
    bus = await nats.connect(address)
    tap = await bus.subscribe(f"codea1.{run}.>")
    async for message in tap.messages:
        data = message.data
        if message.headers.get("content-encoding") == "zstd":
            data = zstandard.decompress(data)
        event, kind = msgpack.unpackb(data), message.headers["ce-type"]
        print(kind, message.headers["ce-subject"], event, flush=True)
        if kind == "code.sampled":
            planes = event["response_tokens"][0]["tokens"]  # every lowest byte, then every second, third, highest
            count = len(planes) // 4
            print("first answer:", [int.from_bytes(planes[i::count], "little", signed=True) for i in range(count)], flush=True)

asyncio.run(main(*sys.argv[1:]))
