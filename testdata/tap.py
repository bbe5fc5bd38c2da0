# Prints every event of a running training:
#   pip install msgpack nats-py zstandard
#   python3 tap.py nats://127.0.0.1:4222
import asyncio, struct, sys
import msgpack, nats, zstandard

async def main(address):
    bus = await nats.connect(address)
    tap = await bus.subscribe("codea1.>")
    async for message in tap.messages:
        data = message.data
        if message.headers.get("content-encoding") == "zstd":
            data = zstandard.decompress(data)
        event, kind = msgpack.unpackb(data), message.headers["ce-type"]
        print(kind, message.headers["ce-subject"], event, flush=True)
        if kind == "code.sampled":
            packed = event["answers"][0]["tokens"]  # little-endian int32
            print("first answer:", [token for (token,) in struct.iter_unpack("<i", packed)], flush=True)

asyncio.run(main(sys.argv[1]))
