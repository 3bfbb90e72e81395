"""Real programs in a writable store: they find a filesystem, and every version of it is whole."""

import shutil

import pytest

from ..harness.daemon import Place


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@needs("git")
def test_git(place: Place) -> None:
    script = """
    export HOME=/nowhere GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a
    export GIT_COMMITTER_EMAIL=a GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
    git init -q work; cd work
    for n in $(seq 20); do echo $n > file$n; done
    git add .; git commit -qm one
    git checkout -q -b other; echo other > file1; git rm -q file2; git commit -qam two
    git checkout -q -; git merge -q other; git gc -q; git fsck --full; git status --porcelain
    git clone -q . ../clone; cd ../clone; cat file1; ls | wc -l
    """
    assert place.inside.shell(script, cwd=place.state, timeout=60) == "other\n19\n"
    place.daemon.barrier()
    latest = place.path(".versions/latest/work")
    checked = place.inside.run(
        "git",
        "-c",
        "safe.directory=*",
        "--git-dir",
        f"{latest}/.git",
        "fsck",
        "--full",
        environment={"HOME": "/nowhere"},
    )
    assert checked.code == 0, checked


@needs("git")
def test_git_does_not_meet_the_versions(place: Place) -> None:
    place.write("file", b"")
    place.daemon.barrier()
    script = "export HOME=/nowhere; git init -q .; git add .; git ls-files; find .; grep -rl . ."
    assert ".versions" not in place.inside.shell(script, cwd=place.state)


@needs("sqlite3")
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_sqlite(place: Place, journal: str) -> None:
    script = f"""
    sqlite3 db 'pragma journal_mode={journal}; create table t (n integer primary key, v text);' >/dev/null
    save='begin; insert into t (v) values (hex(randomblob(2000))); update t set v = v || n; commit;'
    for n in $(seq 10); do
        sqlite3 -cmd '.timeout 10000' db "$save" &
        sqlite3 -cmd '.timeout 10000' db "select count(*) from t" >/dev/null
        wait
    done
    sqlite3 db 'select count(*) from t; pragma integrity_check;'
    """
    assert place.inside.shell(script, cwd=place.state, timeout=60) == "10\nok\n"
    place.daemon.barrier()
    copy = place.daemon.directory / f"{place.agent}.db"
    copy.write_bytes(place.read(".versions/latest/db"))
    assert place.inside.shell(f"sqlite3 {copy} 'pragma integrity_check'") == "ok\n"


@needs("rsync")
def test_rsync(place: Place) -> None:
    script = """
    mkdir -p source/a/b; for n in $(seq 50); do echo $n > source/a/b/$n; done; ln -s b source/a/link
    ln source/a/b/1 source/hard; chmod 600 source/a/b/2; touch -d 2001-01-01 source/a/b/3
    rsync -aHX source/ target/; rsync -aHXnci --delete source/ target/
    rm source/a/b/4; echo changed > source/a/b/5; rsync -aHX --delete --inplace source/ target/
    diff -r source target; stat -c %h target/hard; rsync -aHXnci --delete source/ target/
    """
    assert place.inside.shell(script, cwd=place.state, timeout=60) == "2\n"


def test_tar_and_cp_keep_everything(place: Place) -> None:
    script = """
    mkdir -p d/e; echo x > d/e/f; ln d/e/f d/g; ln -s e/f d/h; chmod 751 d/e; touch -d 2001-01-01 d/e/f
    tar cf a.tar d; mkdir x; tar xf a.tar -C x; diff -r d x/d; cp -a d y; diff -r d y
    stat -c '%a %Y %h' x/d/e/f y/e/f; stat -c %a y/e; readlink y/h
    """
    expected = "644 978307200 2\n644 978307200 2\n751\ne/f\n"
    assert place.inside.shell(f"export TZ=UTC; {script}", cwd=place.state) == expected


@needs("vim")
def test_vim_saves_as_one_change(place: Place) -> None:
    place.write("notes", b"one\n")
    place.daemon.barrier()
    for options in ("set backupcopy=no", "set backupcopy=yes", "set backup writebackup", "set nowritebackup"):
        vim = [
            "vim",
            "-u",
            "NONE",
            "-N",
            "-es",
            "-c",
            options,
            "-c",
            "normal otwo",
            "-c",
            "wq",
            place.path("notes"),
        ]
        place.inside.run(*vim, environment={"HOME": "/nowhere"})
        place.daemon.barrier()
    assert place.read("notes").count(b"two") == 4
    assert place.changes() == [["created notes"], *[["modified notes"]] * 4]


def test_an_atomic_save_is_one_change(place: Place) -> None:
    place.write("notes", b"one\n")
    place.daemon.barrier()
    place.inside.shell("echo two > .tmp-notes; sync .tmp-notes; mv .tmp-notes notes", cwd=place.state)
    place.daemon.barrier()
    assert place.changes() == [["created notes"], ["modified notes"]]


def test_sed_perl_and_python_edit_in_place(place: Place) -> None:
    script = """
    echo one > f; sed -i s/one/two/ f; perl -i -pe s/two/three/ f
    python3 -c "import pathlib; p = pathlib.Path('f'); p.write_text(p.read_text() + 'four')"; cat f; ls
    """
    assert place.inside.shell(script, cwd=place.state) == "three\nfourf\n"
