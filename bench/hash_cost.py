"""What an input hash costs, beside the least that could be done: orjson with sorted keys, then SHA-256.

Run: python bench/hash_cost.py. Floor and hash are timed in turn in the same run, because a machine's speed drifts; the
smallest of many rounds is printed, each of them shorter than a time slice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from time import process_time

import orjson

from turnwatch.core.hashing import input_hash

ROUNDS = 1000


def floor(args: object) -> str:
    return hashlib.sha256(orjson.dumps(args, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def cases() -> dict[str, object]:
    flat = {
        "customer_id": "C-7841",
        "status": "open",
        "limit": 50,
        "include_archived": False,
        "cursor": None,
        "query": "orders placed in the last thirty days that have not been shipped yet",
        "sort": "created_at",
        "region": "eu-west-1",
    }
    order = {
        "order_id": "O-120931",
        "lines": [{"sku": "A-77123", "quantity": 3, "price": 12.95}, {"sku": "B-10", "quantity": 1, "price": 4.5}],
        "address": {"street": "12 High Street", "city": "Leeds", "country": "GB"},
        "note": "Leave with the neighbour at number 14 if nobody answers the door, please.",
    }
    return {
        "200 B flat": flat,
        "200 B flat, JSON text": json.dumps(flat),
        "300 B nested": order,
        "10 KB, one text": {"path": "src/app/main.py", "content": "def handler(event):\n    return event\n" * 270},
        "10 KB flat": {f"field_{number:03}": "value of this field " * 4 for number in range(100)},
        "10 KB nested, small values": {"orders": [{**order, "order_id": f"O-{number}"} for number in range(32)]},
        "10 KB nested, sentences": {
            "messages": [{"role": "user", "content": "Where is the order I placed last week? " * 8} for _ in range(30)]
        },
        "10 KB not ASCII": {"path": "notes.md", "content": "Größe, façade, naïve; 注文はどこですか\n" * 200},
        "10 KB with whole floats": {"points": [{"x": 1.0, "y": 2.5, "label": "corner of the box"} for _ in range(220)]},
    }


def hashed(args: object) -> str:
    return input_hash("search_orders", args)


def seconds_per_call(function: Callable[[object], str], args: object, calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        function(args)
    return (process_time() - start) / calls


def main() -> None:
    print(f"{'arguments':28}{'bytes':>8}{'floor us':>10}{'hash us':>10}{'ratio':>8}")
    for name, args in cases().items():
        size = len(args) if isinstance(args, str) else len(orjson.dumps(args))
        calls = 100 if size < 1000 else 10
        floors, hashes = [], []
        for _ in range(ROUNDS):
            floors.append(seconds_per_call(floor, args, calls))
            hashes.append(seconds_per_call(hashed, args, calls))
        least, taken = min(floors) * 1e6, min(hashes) * 1e6
        print(f"{name:28}{size:8}{least:10.2f}{taken:10.2f}{taken / least:8.2f}")


if __name__ == "__main__":
    main()
