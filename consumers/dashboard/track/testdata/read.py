# Reads what codea1 track has written, with the readers of the tools themselves, and
# prints {tool: {figure: [[step, value], ...]}}.
import glob
import json
import os
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
out, run = sys.argv[1:]
read = {}

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

curves = read["tensorboard"] = {}
(path,) = glob.glob(f"{out}/tensorboard/{run}/events.out.tfevents.*")
for event in EventFileLoader(path).Load():
    for value in event.summary.value:
        curves.setdefault(value.tag, []).append([event.step, value.tensor.float_val[0]])

try:
    from mlflow.tracking import MlflowClient
except ImportError:
    pass  # it takes long to install
else:
    curves = read["mlflow"] = {}
    client = MlflowClient(f"file://{os.path.abspath(out)}/mlruns")
    experiment = client.get_experiment_by_name("codea1")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.run_name == run and found.info.status == "FINISHED", found
    assert found.data.params == {"seed": "1"}, found.data.params
    for name in found.data.metrics:
        curves[name] = [[m.step, m.value] for m in client.get_metric_history(found.info.run_id, name)]

from wandb.proto import wandb_internal_pb2


def records(path):
    """Yields the records of a LevelDB log with W&B's header of 7 bytes."""
    data, at, whole = open(path, "rb").read(), 7, b""
    assert data[:4] == b":W&B", data[:7]
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        part, at = data[at + 7 : at + 7 + length], at + 7 + length
        whole = part if kind in (1, 2) else whole + part
        if kind in (1, 4):
            yield whole


curves = read["wandb"] = {}
(path,) = glob.glob(f"{out}/wandb/offline-run-*/run-*.wandb")
for data in records(path):
    record = wandb_internal_pb2.Record.FromString(data)
    if record.HasField("run"):
        assert record.run.display_name == run, record.run
    row = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
    for name, value in row.items():
        if not name.startswith("_"):
            curves.setdefault(name, []).append([int(record.history.step.num), value])
print(json.dumps(read))
