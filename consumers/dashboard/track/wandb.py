# Gives the figures of a run to W&B's own SDK. Standard input has a JSON object per
# line: first the run, then its rows. codea1 starts it.
import json
import os
import sys

sys.path = [p for p in sys.path if p]  # not the working directory, where W&B's own files are
try:
    import wandb
except ImportError as e:
    sys.exit(f"{e}: `{sys.executable} -m pip install wandb` installs it, and --wandb-python names another Python")

first = json.loads(sys.stdin.readline())
run = wandb.init(
    project=os.environ.get("WANDB_PROJECT", "codea1"),
    mode=os.environ.get("WANDB_MODE", "offline"),
    id=first["id"],
    name=first["run"],
    config=first["config"],
    dir=first["dir"],
    resume="allow" if os.environ.get("WANDB_MODE") == "online" else None,
    settings=wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True),
)
print("ready", flush=True)
for line in sys.stdin:
    row = json.loads(line)
    run.log(row["figures"], step=row["step"])
run.finish()
