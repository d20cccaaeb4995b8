"""All records once more as other processors would give them: ``python tests/golden/settings.py``, by hand.

Runs ``record.py --check`` under every instruction set of ours, other kernels of OpenBLAS, one and two of its threads,
numpy without AVX, and glibc's mathematical functions without fused multiply-add.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"ONEPASS_ISA": "scalar"},
    {"ONEPASS_ISA": "avx2"},
    {"OPENBLAS_NUM_THREADS": "1"},
    {"OPENBLAS_NUM_THREADS": "2"},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "SkylakeX"},
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
    {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"},
)


def main() -> int:
    failed = 0
    only = [int(number) for number in sys.argv[1:]]  # of the settings, counted from 0
    for setting in [SETTINGS[number] for number in only] or SETTINGS:
        check = [sys.executable, str(Path(__file__).parent / "record.py"), "--check"]
        done = subprocess.run(check, env={**os.environ, **setting}, capture_output=True, text=True)
        failed += done.returncode != 0
        lines = (done.stdout + done.stderr).splitlines()
        name = " ".join(f"{key}={value!r}" for key, value in setting.items())
        print(f"{name or 'as it is'}: {lines[-1]}", flush=True)
        print("".join(f"    {line}\n" for line in lines[:-1][:30]), end="", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
