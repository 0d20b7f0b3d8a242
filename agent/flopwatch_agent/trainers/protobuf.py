"""The few parts of protobuf that event files and run files need: fields of a message, whole numbers."""

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and raw values of a protobuf message.

    Raises:
        ValueError: the message is cut, or holds a wire type that is not known.
        IndexError: the message ends inside a number.
    """
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        wire = key & 7
        if wire == 0:
            number, place = varint(data, place)
            yield key >> 3, number
            continue
        if wire == 2:
            length, place = varint(data, place)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} in a record")
        if place + length > len(data):
            raise ValueError("a record is cut")
        yield key >> 3, data[place : place + length]
        place += length


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The whole number that begins at ``place``, and where the next byte is.

    Raises:
        ValueError: it has more than 64 bits.
        IndexError: the data ends inside it.
    """
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if not byte & 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number in a record is too long")
