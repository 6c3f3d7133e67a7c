#!/usr/bin/env python3
"""A second reader of packed stores, written from docs/store-format.md alone and sharing no code with the program.

  tools/store_reader.py STORE --check           restore every source file in memory and compare its SHA-256
  tools/store_reader.py STORE --tensor NAME     write the bytes of one tensor to standard output
  tools/store_reader.py STORE --tensor NAME --view high|low
                                                of a store of family sliced: the tensor's values as float32 instead, of both
                                                slices or of the higher one (the same for weights of 8 bits)

Needs nothing but Python's standard library; chunks of codec zstd need the `zstd` command. It is an oracle for tests: it checks
no XXH3, since the SHA-256 of the sources covers every byte it hands out, takes about 0.1 seconds for a megabyte of the source
(AMD EPYC, November 2026) and has a whole source file in memory.
"""
import argparse
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
from array import array
from itertools import repeat

WIDTH = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "U8": 1, "U16": 2, "U32": 4,
         "U64": 8, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}


def unzstd(data, count):
    out = subprocess.run(["zstd", "-d", "-c", "-q"], input=data, stdout=subprocess.PIPE, check=True).stdout
    assert len(out) == count, "a zstd chunk has a wrong size"
    return out


def unlz4(data, count):
    """One LZ4 block: token, literals, offset, match, …; the last sequence has literals only."""
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        if nibble == 15:
            while True:
                nibble += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        return nibble

    while True:
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at == len(data):
            break
        offset = data[at] | data[at + 1] << 8
        at += 2
        matched, start = length(token & 15) + 4, len(out) - offset
        match = out[start:start + matched]  # shorter where it overlaps what it makes
        out += (match * -(-matched // len(match)))[:matched]
    assert len(out) == count, "an LZ4 chunk has a wrong size"
    return bytes(out)


def fields(width, shift):
    """What bytes.translate() needs to take `width` bits, from bit `shift` on, out of every byte."""
    return bytes(byte >> shift & (1 << width) - 1 for byte in range(256))


TWO_BITS = [fields(2, shift) for shift in (0, 2, 4, 6)]
THREE_BITS = [fields(3, shift) for shift in (0, 3)]


def two_bits(data, count):
    codes, at = bytearray(), 0
    while len(codes) < count:
        n = min(256, count - len(codes))
        m = -(-n // 4)
        codes += b"".join(data[at:at + m].translate(table) for table in TWO_BITS)[:n]
        at += m
    return codes, at


def three_bits(data, count):
    codes, at = bytearray(), 0
    while len(codes) < count:
        n = min(512, count - len(codes))
        m = -(-n // 8)
        a, b, c = (data[at + line * m:at + (line + 1) * m] for line in range(3))
        columns = [line.translate(table) for line in (a, b, c) for table in THREE_BITS]
        columns.append(bytes(i >> 6 | k >> 6 << 2 & 4 for i, k in zip(a, c)))
        columns.append(bytes(j >> 6 | k >> 7 << 2 for j, k in zip(b, c)))
        codes += b"".join(columns)[:n]
        at += 3 * m
    return codes, at


def pick(streams, codes):
    """For each code the next value of the stream that it names."""
    values = bytes(map(next, map(streams.__getitem__, codes)))
    assert len(values) == len(codes), "a count is wrong"
    return values


def unnative(data, count, blocks):
    """A chunk of codec native: exponents in tile order."""
    groups = count // (512 * blocks)
    numbers = struct.unpack_from(f"<{3 * groups + 2}I", data)
    tables = 12 * groups + 8
    tier1 = -(-(tables + 13 * numbers[-1]) // 64) * 64
    out = bytearray()
    for g in range(groups):
        lists, n2, n3 = numbers[3 * g:3 * g + 3]
        table = tables + 13 * (n3 >> 24)
        exponents = [repeat(exponent) for exponent in data[table:table + 13]]
        n3 &= 0xffffff
        own = data[lists:numbers[3 * g + 3]]
        codes2, used2 = two_bits(own, n2)
        codes3, used3 = three_bits(own[used2:], n3)
        literals = iter(own[used2 + used3:])
        third = iter(pick(exponents[6:] + [literals], codes3))
        second = iter(pick(exponents[3:6] + [third], codes2))
        lines = range(tier1 + 128 * blocks * g, tier1 + 128 * blocks * (g + 1), 64)  # each has 4 rows of a block
        codes1 = b"".join(data[line:line + 64].translate(bits) for line in lines for bits in TWO_BITS)
        out += pick(exponents[:3] + [second], codes1)
        assert not list(second) and not list(third) and not list(literals), "a count is wrong"
    assert len(out) == count, "a native chunk has a wrong size"
    return bytes(out)


def untile(plane, rows, columns):
    """A plane in tile order, row by row. A line of 64 places is 8 runs of 8 columns, which go where they belong for
    one row and all its blocks at once."""
    blocks = -(-columns // 64)
    runs, out = array("Q", plane), array("Q", bytes(len(plane)))
    for row in range(rows):
        line = (row // 8 * blocks * 8 + row % 8) * 8  # the row's line of the first block
        for run in range(8):
            to = row * blocks * 8 + run
            out[to:to + 8 * blocks:8] = runs[line + 2 * (run % 4) + run // 4:line + 64 * blocks:64]
    data = out.tobytes()
    return b"".join(data[row * blocks * 64:row * blocks * 64 + columns] for row in range(rows))


def merge(exponents, sm):
    """Both planes to words, all elements at once: as one long number each, of a byte for an element."""
    def mask(byte):
        return int.from_bytes(bytes([byte]) * len(sm), "little")

    e, s = int.from_bytes(exponents, "little"), int.from_bytes(sm, "little")
    words = bytearray(2 * len(sm))
    words[0::2] = ((e & mask(1)) << 7 | s & mask(0x7F)).to_bytes(len(sm), "little")
    words[1::2] = (s & mask(0x80) | e >> 1 & mask(0x7F)).to_bytes(len(sm), "little")
    return bytes(words)


def code(data, bits, columns, row, column):
    """One code of a matrix in cells of 16 rows and 32 columns."""
    cell = row // 16 * -(-columns // 32) + column // 32
    c, lines = column % 32, 64 * bits * cell + 4 * (row % 16) + column % 4

    def line(n):
        return data[lines + 64 * n]

    if bits == 8:
        return (line(c // 4) ^ 128) - 128
    if bits == 4:
        return line(c // 4 % 4) >> (0 if c < 16 else 4) & 15
    two = line(c // 4 % 2) >> 2 * (c // 8) & 3
    return two if bits == 2 else two | (line(2) >> c // 4 & 1) << 2


def sliced_values(msb, lsb, rows, columns, high, low, view):
    groups = -(-columns // 32)
    cells, shift = -(-rows // 16) * groups, high - low
    assert len(msb) == (64 * low + 48) * cells and len(lsb) == 64 * shift * cells, "a slice has a wrong size"
    for r in range(rows):
        for c in range(columns):
            at = (r // 16 * groups + c // 32) * 16 + r % 16
            scale = struct.unpack_from("<e", msb, 64 * low * cells + 2 * at)[0]
            zero = msb[(64 * low + 32) * cells + at]
            top = code(msb, low, columns, r, c)
            if view == "high":
                yield scale * (top * 2**shift + code(lsb, shift, columns, r, c) - zero)
            else:
                yield scale * 2**shift * (top - zero // 2**shift)


def int8_values(data, rows, columns):
    scales, groups = 512 * -(-rows // 16) * -(-columns // 32), -(-columns // 128)
    assert len(data) == scales + 32 * groups * -(-rows // 16), "a matrix has a wrong size"
    for r in range(rows):
        for c in range(columns):
            scale = struct.unpack_from("<e", data, scales + 32 * (r // 16 * groups + c // 128) + 2 * (r % 16))[0]
            yield scale * code(data, 8, columns, r, c)


class Store:
    def __init__(self, path):
        self.path = path
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            self.manifest = json.loads(file.read())
        m = self.manifest
        native = m["codec"]["name"] == "native"
        self.slices = m.get("slices")
        formats = any("format" in p for p in m["dense"] + [p for e in m["experts"] for p in e["pieces"]])
        gguf = any("gguf" in source for source in m["sources"])
        requires = ["formats"] * formats + ["gguf"] * gguf + ["native"] * native + ["sliced"] * (self.slices is not None)
        assert (m["format"], m["version"], m["requires"]) == ("sluice", 1, requires), "another format"
        assert (m["family"] == "sliced") == (self.slices is not None), "another family"
        assert self.slices is None or self.slices["quantiser"] == "amat", "another quantiser"
        self.decode = {"none": None, "zstd": unzstd, "lz4": unlz4, "native": None}[m["codec"]["name"]]
        # Each tensor's pieces: (first element, file, piece), in order.
        self.pieces = {}
        for piece in m["dense"]:
            self.add(0, piece)
        for expert in m["experts"]:
            for piece in expert["pieces"]:
                self.add(expert["file"], piece)

    def add(self, file, piece):
        if "format" in piece:  # each plane is a raw piece of the tensor that it was taken from
            for tensor, first, count, offset, length, xxh3 in piece["planes"]:
                self.add(file, {"tensor": tensor, "elements": [first, count], "raw": [offset, length, xxh3]})
        else:
            self.pieces.setdefault(piece["tensor"], []).append((piece["elements"][0], file, piece))

    def read(self, name, offset, length):
        with open(os.path.join(self.path, name), "rb") as file:
            file.seek(offset)
            data = file.read(length)
        assert len(data) == length, name + " ends"
        return data

    def piece(self, file, piece):
        name = self.manifest["data_files"][file][0]
        if "raw" in piece:
            return self.read(name, piece["raw"][0], piece["raw"][1])
        sm = self.read(name, piece["sm"][0], piece["sm"][1])
        exponents = bytearray()
        for offset, length, first, count, coded, _ in piece["chunks"]:
            assert first == len(exponents)
            data = self.read(name, offset, length)
            if coded and "tiles" in piece:
                data = unnative(data, count, -(-piece["tiles"][1] // 64))
            elif coded:
                data = self.decode(data, count)
            exponents += data
        assert len(exponents) == len(sm), "a plane has a wrong size"
        if "tiles" in piece:
            exponents, sm = untile(exponents, *piece["tiles"]), untile(sm, *piece["tiles"])
        assert len(exponents) == len(sm) == piece["elements"][1]
        return merge(exponents, sm)

    def values(self, index, view):
        """The values of a tensor whose pieces are all quantised, row by row."""
        for _, file, piece in sorted(self.pieces[index], key=lambda p: p[:2]):
            name = self.manifest["data_files"][file][0]
            if "int8" in piece:
                yield from int8_values(self.read(name, *piece["int8"][:2]), *piece["matrix"])
            else:
                msb, lsb = (self.read(name, *piece[part][:2]) for part in ("msb", "lsb"))
                yield from sliced_values(msb, lsb, *piece["matrix"], self.slices["high"], self.slices["low"], view)

    def tensor(self, index):
        data, covered = bytearray(), 0
        for first, file, piece in sorted(self.pieces[index], key=lambda p: p[:2] + (p[2]["elements"][1],)):
            assert first == covered, "pieces leave a hole"
            data += self.piece(file, piece)
            covered += piece["elements"][1]
        name, dtype, shape, _, _ = self.manifest["tensors"][index]
        elements = 1
        for dimension in shape:
            elements *= dimension
        assert len(data) == elements * WIDTH[dtype], name + " has a wrong size"
        return data

    def source(self, index):
        source = self.manifest["sources"][index]
        extent = source.get("header", source.get("gguf"))
        if extent is None:
            return self.read(os.path.join("files", source["path"]), 0, source["size"])
        rest, used = self.read("headers.bin", *extent[:2]), 0  # what belongs to no tensor
        data = bytearray()
        for offset, i in sorted((t[4], i) for i, t in enumerate(self.manifest["tensors"]) if t[3] == index):
            tensor = self.tensor(i)
            if not tensor:
                continue
            assert offset >= len(data), "tensors overlap"
            gap = offset - len(data)
            data += rest[used:used + gap] + tensor
            used += gap
            assert "gguf" in source or used == len(rest), "tensors leave a hole"
        assert len(data) + len(rest) - used == source["size"], "tensors do not fill the file"
        return data + rest[used:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("store")
    parser.add_argument("--check", action="store_true", help="restore every source file in memory and compare its SHA-256; "
                        "about 0.1 seconds for a megabyte")
    parser.add_argument("--tensor", help="write the bytes of one tensor to standard output")
    parser.add_argument("--view", choices=["high", "low"],
                        help="of rounded weights: the tensor's values as float32, of both slices or of the higher one")
    arguments = parser.parse_args()
    store = Store(arguments.store)
    if store.manifest["codec"]["name"] == "zstd" and shutil.which("zstd") is None:
        sys.exit("store_reader: the zstd command is not installed")
    if arguments.tensor is not None:
        names = [t[0] for t in store.manifest["tensors"]]
        index = names.index(arguments.tensor)
        if arguments.view is None:
            sys.stdout.buffer.write(store.tensor(index))
        else:
            for value in store.values(index, arguments.view):
                sys.stdout.buffer.write(struct.pack("<f", value))
    if arguments.check and store.slices is not None:
        sys.exit("store_reader: experts of family sliced were rounded; the source cannot be restored")
    if arguments.check:
        for index, source in enumerate(store.manifest["sources"]):
            found = hashlib.sha256(store.source(index)).hexdigest()
            if found != source["sha256"]:
                sys.exit(f"store_reader: {source['path']}: expected {source['sha256']}, found {found}")
        print(f"{len(store.manifest['sources'])} files ok")


if __name__ == "__main__":
    main()
