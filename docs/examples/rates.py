#!/usr/bin/env python3
"""Hits of each event in each second, through the API alone: docs/examples/rates.py [ADDRESS [SECONDS]]

Needs python3-grpcio, and stubs that are made once, in a folder on PYTHONPATH:

    protoc -I proto --python_out=. --grpc_out=. \\
        --plugin=protoc-gen-grpc=$(command -v grpc_python_plugin) proto/probed/v1/*.proto
"""

import collections
import sys
import time

import grpc
from probed.v1 import events_pb2, events_pb2_grpc, targets_pb2, targets_pb2_grpc


def rates(stream):
    """Once a second the hits of each event, and the losses, of that second."""
    schemas = {}
    counts = collections.Counter()
    end = time.monotonic() + 1
    for response in stream:
        schemas.update((schema.id, schema) for schema in response.schemas)
        for event in response.events:
            if event.WhichOneof("kind") == "hit":
                schema = schemas[event.hit.schema_id]
                counts[f"{schema.group}/{schema.event}"] += 1
            elif event.WhichOneof("kind") == "loss":
                counts["lost"] += event.loss.lost
        if time.monotonic() >= end:
            yield counts
            counts = collections.Counter()
            end = time.monotonic() + 1


def main(address="unix:///run/probed/probed.sock", seconds=None):
    with grpc.insecure_channel(address) as channel:
        targets = targets_pb2_grpc.TargetServiceStub(channel)
        for target in targets.ListTargets(targets_pb2.ListTargetsRequest()).targets:
            print(target.name, target.comm, f"{target.sites} sites")
        events = events_pb2_grpc.EventServiceStub(channel)
        stream = events.WatchEvents(events_pb2.WatchEventsRequest(greet=True),
                                    timeout=seconds and float(seconds))
        try:
            for counts in rates(stream):
                print("  ".join(f"{name} {count}/s" for name, count in sorted(counts.items())),
                      flush=True)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
