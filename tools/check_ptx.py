#!/usr/bin/env python3
"""Looks at what nvcc makes of the GPU's kernels: nothing may round in another way than the host does.

    tools/check_ptx.py NVCC FLAGS INCLUDE FILE.cu...

Compiles each file to PTX with FLAGS and fails if an instruction flushes subnormal numbers, approximates, or is
a multiply-add that the source does not ask for by name.
"""
import re
import subprocess
import sys

# An explicit fused multiply-add is fma.rn; what a compiler contracts for old architectures is mad.
FORBIDDEN = re.compile(r"\.ftz\b|\.approx\b|\.full\b|\bmad(\.\w+)*\.f(16|32|64)\b|\b(red|atom)\b[\w.]*\.f\d")
INSTRUCTION = re.compile(r"^\s*(@!?%\w+\s+)?[a-z][\w.:]*\s.*;")


def offences(ptx):
    entry, found = "?", []
    for line in ptx.splitlines():
        if ".entry" in line:
            entry = line.split(".entry")[1].strip(" (")
        elif INSTRUCTION.match(line) and FORBIDDEN.search(line):
            found.append(f"{entry}: {line.strip()}")
    return found


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    nvcc, flags, include, files = sys.argv[1], sys.argv[2].split(), sys.argv[3], sys.argv[4:]
    self_check = "\tmul.ftz.f32 %f1, %f2, %f3;\n\tdiv.approx.f32 %f1, %f2, %f3;\n\tfma.rn.f32 %f1, %f2, %f3, %f4;"
    assert len(offences(self_check)) == 2
    bad, multiply_adds = [], 0
    for name in files:
        command = [nvcc, "-std=c++20", "-arch=compute_90", *flags, "-I", include, "--ptx", "-o", "-", name]
        ptx = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        bad += [f"{name}: {each}" for each in offences(ptx)]
        multiply_adds += len(re.findall(r"\bfma\.rn\.f32\b", ptx))
    for each in bad:
        print(each)
    print(f"{len(files)} files, {multiply_adds} fused multiply-adds, {len(bad)} forbidden instructions")
    if bad or multiply_adds == 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
