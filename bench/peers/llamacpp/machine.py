"""What the machine is and gives: read-ahead, the page cache, direct reads, energy."""
import ctypes
import glob
import mmap
import os
import random
import threading
import time


class ReadAhead:
    """Read-ahead of the disk that a file is on, in KiB; found() again when the program leaves."""

    def __init__(self, path):
        device = os.stat(path).st_dev
        node = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        if not os.path.exists(f"{node}/queue"):  # a partition: the disk is one up
            node = os.path.dirname(node)
        self.file = f"{node}/queue/read_ahead_kb"
        with open(self.file) as file:
            self.found = int(file.read())

    def set(self, kib):
        with open(self.file, "w") as file:
            file.write(str(kib))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.set(self.found)


def files_of(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def cached_share(path):
    """The share of a file that is in the page cache."""
    size = os.path.getsize(path)
    if size == 0:
        return 0.0
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_PRIVATE | 0x4000) as view:
        pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        vector = (ctypes.c_ubyte * pages)()
        start = ctypes.addressof(ctypes.c_char.from_buffer(view))
        if libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), vector) != 0:
            raise OSError(ctypes.get_errno(), "mincore", path)
        return bytes(vector).count(1) / pages


def drop_from_cache(*paths):
    """Pages of these files leave the page cache; other programs' stay."""
    for path in paths:
        for name in files_of(path):
            fd = os.open(name, os.O_RDONLY)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
    largest = max((name for path in paths for name in files_of(path)), key=os.path.getsize)
    if cached_share(largest) > 0.01:  # held by someone: then everything goes
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")


def direct_rate(path, seconds=1.5, block=1 << 20, threads=4):
    """Bytes per second of random direct reads of a file, several in flight."""
    largest = max(files_of(path), key=os.path.getsize)
    blocks = os.path.getsize(largest) // block
    fd = os.open(largest, os.O_RDONLY | os.O_DIRECT)
    counts = [0] * threads
    end = time.monotonic() + seconds

    def read(i):
        buffer, draw = mmap.mmap(-1, block), random.Random(time.time_ns() + i)
        while time.monotonic() < end:
            counts[i] += os.preadv(fd, [buffer], draw.randrange(blocks) * block)

    workers = [threading.Thread(target=read, args=(i,)) for i in range(threads)]
    started = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os.close(fd)
    return sum(counts) / (time.monotonic() - started)


def best_direct_rate(path):
    return max(direct_rate(path, 0.7, block, threads) for block in (256 << 10, 1 << 20, 4 << 20) for threads in (2, 4))


def joules():
    """Energy of all CPU packages since some time; None where the kernel does not say."""
    total = 0.0
    for path in glob.glob("/sys/class/powercap/intel-rapl:?/energy_uj"):
        try:
            with open(path) as file:
                total += int(file.read()) * 1e-6
        except OSError:
            return None
    return total or None
