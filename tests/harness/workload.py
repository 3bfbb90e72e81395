"""What sandboxes do all the time, all at once, each step checked against what was acknowledged before.

    python workload.py DIRECTORY        until SIGTERM; then prints one JSON object and ends

Every job is a thread that repeats one small piece of work in a directory of its own. It keeps a model of
what it did; a difference, or an error of any system call, is a failure. Standard library only.
"""

import json
import mmap
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

Step = Callable[[str, int], None]
JOBS: list[Step] = []
stopping = threading.Event()
failures: list[str] = []
counts: dict[str, int] = {}
lines = 0


def job(step: Step) -> Step:
    JOBS.append(step)
    return step


def write(path: str, content: bytes, mode: str = "wb") -> None:
    with open(path, mode) as file:
        file.write(content)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def same(found: object, expected: object) -> None:
    assert found == expected, f"{str(found)[:100]} instead of {str(expected)[:100]}"


@job
def create(directory: str, number: int) -> None:
    path = f"{directory}/{number % 50}"
    content = os.urandom(random.choice([10, 4096, 70_000]))
    write(path, content)
    same(read(path), content)


@job
def append(directory: str, number: int) -> None:
    global lines
    write(f"{directory}/log", b"%07d\n" % lines, "ab")
    lines += 1


@job
def save_atomically(directory: str, number: int) -> None:
    path, content = f"{directory}/document", b"version %d\n" % number * 100
    write(f"{path}.new", content)
    os.rename(f"{path}.new", path)
    same(read(path), content)


@job
def rename_directories(directory: str, number: int) -> None:
    before, after = f"{directory}/a{number}", f"{directory}/b{number}"
    os.mkdir(before)
    write(f"{before}/file", b"x")
    os.rename(before, after)
    same(os.listdir(after), ["file"])
    os.unlink(f"{after}/file")
    os.rmdir(after)


@job
def make_names(directory: str, number: int) -> None:
    descriptor = os.open(f"{directory}/first", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(descriptor, b"1")
    os.close(descriptor)
    os.link(f"{directory}/first", f"{directory}/second")
    os.symlink("first", f"{directory}/link")
    same(os.stat(f"{directory}/first").st_nlink, 2)
    for name in ("link", "second", "first"):
        os.unlink(f"{directory}/{name}")


@job
def use_without_name(directory: str, number: int) -> None:
    descriptor = os.open(f"{directory}/{number}", os.O_CREAT | os.O_RDWR)
    os.write(descriptor, b"hello")
    os.unlink(f"{directory}/{number}")
    time.sleep(random.random() / 20)
    os.pwrite(descriptor, b"J", 0)
    same(os.pread(descriptor, 10, 0), b"Jello")
    os.close(descriptor)


@job
def write_slowly(directory: str, number: int) -> None:
    path, parts = f"{directory}/file", [b"%04d" % part for part in range(20)]
    with open(path, "wb", buffering=0) as file:
        for part in parts:
            file.write(part)
            time.sleep(0.005)
        same(os.fstat(file.fileno()).st_size, 80)
    same(read(path), b"".join(parts))


@job
def transact(directory: str, number: int) -> None:
    database = sqlite3.connect(f"{directory}/database", timeout=30)
    try:
        database.execute("create table if not exists numbers (number)")
        database.execute("insert into numbers values (?)", (number,))
        database.commit()
        same(database.execute("select count(*) from numbers").fetchone()[0], number + 1)
    finally:
        database.close()


@job
def map_memory(directory: str, number: int) -> None:
    path = f"{directory}/file"
    write(path, bytes(8192))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 8192) as memory:
        memory[:5] = b"hello"
        memory[5000:5003] = b"abc"
        memory.flush()
    content = read(path)
    same((content[:5], content[5000:5003]), (b"hello", b"abc"))


@job
def set_attributes(directory: str, number: int) -> None:
    path, value = f"{directory}/file", b"%d" % number
    write(path, b"1")
    os.chmod(path, 0o600 + number % 8)
    os.setxattr(path, "user.number", value)
    same(os.getxattr(path, "user.number"), value)
    os.removexattr(path, "user.number")
    os.truncate(path, 100)
    same(os.stat(path).st_size, 100)


@job
def remove_trees(directory: str, number: int) -> None:
    for name in "abc":
        os.makedirs(f"{directory}/tree/{name}")
        write(f"{directory}/tree/{name}/file", name.encode())
    subprocess.run(["rm", "-r", f"{directory}/tree"], check=True, capture_output=True)
    same(os.listdir(directory), [])


@job
def commit_to_git(directory: str, number: int) -> None:
    repository = f"{directory}/repository"
    if number == 0:
        git("init", "-q", repository)
    write(f"{repository}/file", b"%d" % number)
    git("-C", repository, "add", ".")
    git("-C", repository, "commit", "-q", "-m", str(number))


def git(*arguments: str) -> None:
    who = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def repeat(step: Step, directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    while not stopping.is_set() and len(failures) < 20:
        number = counts.get(step.__name__, 0)
        try:
            step(directory, number)
        except Exception:
            failures.append(f"{step.__name__} {number}: {traceback.format_exc(limit=-1)}")
        counts[step.__name__] = number + 1


def stop(_signal: int, _frame: FrameType | None) -> None:
    stopping.set()


def main(directory: str) -> None:
    signal.signal(signal.SIGTERM, stop)
    threads = [threading.Thread(target=repeat, args=(step, f"{directory}/{step.__name__}")) for step in JOBS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        same(read(f"{directory}/append/log"), b"".join(b"%07d\n" % line for line in range(lines)))
        git("-C", f"{directory}/commit_to_git/repository", "fsck", "--strict")
    except Exception:
        failures.append(f"at the end: {traceback.format_exc(limit=-1)}")
    print(json.dumps({"failures": failures, "counts": counts, "lines": lines}))


if __name__ == "__main__":
    main(sys.argv[1])
