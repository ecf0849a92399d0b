"""Damage to bytes: what disks, transfers and editors do, and worse."""

from random import Random


def damaged(random: Random, data: bytes) -> bytes:
    """Change some bytes, cut, repeat or insert."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 5, 30])):
        _damage(random, changed)
    return bytes(changed)


def _damage(random: Random, data: bytearray) -> None:
    place = random.randrange(len(data)) if data else 0
    length = random.choice([1, 1, 4, 64])
    match random.choice(["flip", "flip", "replace", "cut", "remove", "repeat", "insert"]):
        case "flip" if data:
            data[place] ^= 1 << random.randrange(8)
        case "replace" if data:
            data[place : place + length] = random.randbytes(len(data[place : place + length]))
        case "cut" if random.random() < 0.2:
            del data[place:]
        case "remove":
            del data[place : place + length]
        case "repeat":
            data[place:place] = data[place : place + length]
        case _:
            data[place:place] = random.choice([b"\0", b"\xff", b'"', b"\n", b"\r", b",", b";"])
