"""What an input hash costs, beside the least that could be done: orjson with sorted keys, then SHA-256.

Run: python bench/hash_cost.py. Floor and hash are timed in turn in the same run, because a shared machine's speed
drifts; the smallest of the rounds is printed.
"""

from __future__ import annotations

import hashlib
import json
import timeit

import orjson

from turnwatch.core.hashing import input_hash

ROUNDS = 15


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
        "10 KB nested": {"orders": [order] * 32},
        "10 KB nested, sentences": {
            "messages": [{"role": "user", "content": "Where is the order I placed last week? " * 8}] * 30
        },
        "10 KB not ASCII": {"path": "notes.md", "content": "Größe, façade, naïve; 注文はどこですか\n" * 200},
        "10 KB with whole floats": {"points": [{"x": 1.0, "y": 2.5, "label": "corner of the box"}] * 220},
    }


def seconds_per_call(statement: str, args: object, number: int) -> float:
    return timeit.timeit(statement, globals={**globals(), "args": args}, number=number) / number


def main() -> None:
    print(f"{'arguments':28}{'bytes':>8}{'floor us':>10}{'hash us':>10}{'ratio':>8}")
    for name, args in cases().items():
        size = len(args) if isinstance(args, str) else len(orjson.dumps(args))
        number = 20_000 if size < 1000 else 1000
        floors, hashes = [], []
        for _ in range(ROUNDS):
            floors.append(seconds_per_call("floor(args)", args, number))
            hashes.append(seconds_per_call("input_hash('search_orders', args)", args, number))
        print(
            f"{name:28}{size:8}{min(floors) * 1e6:10.2f}{min(hashes) * 1e6:10.2f}{min(hashes) / min(floors):8.2f}"
        )


if __name__ == "__main__":
    main()
