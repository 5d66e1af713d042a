"""Answers on disk: the same after loading, and never half of one."""

import json
import os
import pickle
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import simlib.lowrank.saved
from simlib import METHODS, LowRank, Similarity, anchored, optimal, tikhonov
from simlib.approximation import Anchored
from simlib.biharmonic import biharmonic_approximation
from simlib.lowrank.lowrank import Closed
from support.interrupts import Lines
from support.lowrank import Answers, interpolating
from support.matrices import asymmetric, indefinite, psd
from support.processes import python

N = 30
MODES = [None, "r", "c"]


def same(one, other):
    """Assert that two answers are one, bit by bit."""
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    assert one.dtype == other.dtype
    assert one.symmetric == other.symmetric
    for name in ("landmarks", "row_landmarks", "left", "core", "right", "residual"):
        part, kept = getattr(one, name), getattr(other, name)
        assert (part is None) == (kept is None)
        assert scipy.sparse.issparse(part) == scipy.sparse.issparse(kept)
        if scipy.sparse.issparse(part):
            assert type(part) is type(kept)
            assert (part.dtype, part.shape) == (kept.dtype, kept.shape)
            assert (part != kept).nnz == 0
        elif part is not None:
            assert part.dtype == kept.dtype
            assert_array_equal(part, kept)
    X = np.random.default_rng(1).standard_normal((one.shape[1], 2))
    asked = [lambda K: K @ X, lambda K: K.T @ np.ones(one.shape[0])]
    new = [
        np.ones((2, one.core.shape[0] + (0 if one.symmetric else one.core.shape[1])))
    ]
    if isinstance(one, Anchored):
        assert (one.weight, one.ridge) == (other.weight, other.ridge)
        assert_array_equal(one.base_landmarks, other.base_landmarks)
        asked.append(lambda K: K.calibration(X))
        sides = 1 if one.symmetric else 2
        cheap = sides * one.base_landmarks.size
        new = [new[0][:, cheap:], new[0][:, :cheap]]
    if type(one).extend is Closed.extend:
        asked.append(lambda K: K.reason)
    else:
        asked.append(lambda K: K.extend(*new))
    for ask in asked:
        assert_array_equal(ask(one), ask(other))


def again(K, folder, mode=None):
    K.save(folder)
    return LowRank.load(folder, mmap_mode=mode)


def with_overlay(sim):
    return tikhonov(sim, 6, nugget=sim.symmetric, overlay=True, rng=0)


def interpolated(sim, sparse=True):
    P = interpolating(N, 7)
    return biharmonic_approximation(sim, P if sparse else P.toarray(), range(7))


def compressed(sim, **options):
    cheap = sim.map(lambda values: values + 1e-3)
    answer = anchored(sim, 5, cheap, base_rank=8, rng=0, **options)
    assert answer.weight == 1
    return answer


def beside_noise(sim):
    answer = anchored(sim, 10, np.random.default_rng(5).standard_normal((N, 2)), rng=0)
    assert answer.weight == 0
    return answer


def sharing_numbers(_):
    left = scipy.sparse.csr_array(np.eye(4)[:, :2])
    right = scipy.sparse.csr_array((left.data, [1, 0], left.indptr), shape=(4, 2))
    return LowRank(left, np.eye(2), right)


MAKERS = {
    **{name: partial(METHODS[name].function, n_landmarks=6, rng=0) for name in METHODS},
    "optimal": partial(optimal, rank=4),
    "overlay": with_overlay,
    "sparse interpolation": interpolated,
    "interpolation": partial(interpolated, sparse=False),
    "compressed companion": compressed,
    "compressed as it is": partial(compressed, calibration=None),
    "companion of no help": beside_noise,
    "sharing numbers": sharing_numbers,
}
SYMMETRIC = ("sms_nystrom", "rpcholesky", "companion of no help", "sharing numbers")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "matrix"),
    [(name, psd if name == "rpcholesky" else indefinite) for name in MAKERS]
    + [(name, asymmetric) for name in MAKERS if name not in SYMMETRIC],
)
def test_the_same_after_loading(tmp_path, name, matrix, dtype, mode):
    rank = 4 if name == "companion of no help" else 20 if "compressed" in name else None
    sim = Similarity.from_matrix(matrix(N, rank=rank).astype(dtype))
    K = MAKERS[name](sim)
    loaded = again(K, tmp_path / "K", mode)
    same(K, loaded)
    assert (loaded.right is loaded.left) == (K.right is K.left)
    mapped = mode is not None and isinstance(K.left, np.ndarray)
    assert isinstance(loaded.left, np.memmap) == mapped
    if "interpolation" in name:
        files = {path.name for path in (tmp_path / "K").iterdir()}
        left = "left.npz" if "sparse" in name else "left.npy"
        assert files == {left, "core.npy", "landmarks.npy", "lowrank.json"}


def test_a_calibration_that_is_unknown(tmp_path):
    facts = {"weight": 0.0, "ridge": 0.0, "base_landmarks": np.zeros(0, int)}
    strange = Anchored(np.ones((3, 1)), np.eye(1), None, calibration=abs, **facts)
    with pytest.raises(TypeError, match="calibration that `anchored` has not made"):
        strange.save(tmp_path / "strange")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_shape_and_layout(tmp_path, order, mode):
    rng = np.random.default_rng(0)
    for k, (n, m, r) in enumerate([(1, 1, 1), (5, 3, 2), (4, 9, 7), (3, 3, 0)]):
        left = np.asarray(rng.standard_normal((n, r)), order=order)
        right = np.asarray(rng.standard_normal((m, r + 1)), order=order)
        K = LowRank(left, rng.standard_normal((r, r + 1)), right, method="mine")
        loaded = again(K, tmp_path / str(k), mode)
        assert_array_equal(loaded.toarray(), K.toarray())
        assert loaded.left.flags.f_contiguous == left.flags.f_contiguous
    view = LowRank(rng.standard_normal((6, 8))[::2, ::2], np.eye(4), calls=np.int64(7))
    loaded = again(view, tmp_path / "view", mode)
    assert_array_equal(loaded.left, view.left)
    assert loaded.calls == 7


def test_a_map_is_read_only(tmp_path):
    K = LowRank(np.ones((2, 1)), [[1.0]])
    K.save(tmp_path / "K")
    for mode in ("r", "c", None):
        with pytest.raises(ValueError, match="read-only"):
            LowRank.load(tmp_path / "K", mmap_mode=mode).left[0] = 2
    for mode in ("r+", "w+", "read", 1):
        with pytest.raises(ValueError, match=r"not changed in place; got"):
            LowRank.load(tmp_path / "K", mmap_mode=mode)


def test_a_map_may_be_saved_where_it_lies_and_pickled(tmp_path):
    K = LowRank(np.arange(4.0)[:, None], [[2.0]])
    mapped = again(K, tmp_path / "K", "r")
    mapped.save(tmp_path / "K")
    same(K, LowRank.load(tmp_path / "K"))
    assert_array_equal(mapped @ np.ones(4), K @ np.ones(4))
    assert_array_equal(pickle.loads(pickle.dumps(mapped)).toarray(), K.toarray())


def test_a_link_stays_a_link(tmp_path):
    K = LowRank(np.ones((2, 1)), [[1.0]])
    K.save(tmp_path / "K")
    (tmp_path / "link").symlink_to(tmp_path / "K")
    LowRank(np.ones((3, 1)), [[1.0]]).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert LowRank.load(tmp_path / "K").shape == (3, 3)


def test_classes(tmp_path):
    K = tikhonov(Similarity.from_matrix(indefinite(N)), 5, rng=0)
    K.save(tmp_path / "K")
    with pytest.raises(ValueError, match="of the class LowRank, which is no Anchored"):
        Anchored.load(tmp_path / "K")

    def mine():
        class Mine(LowRank):
            pass

        return Mine

    Mine = mine()
    Mine(np.ones((2, 1)), [[1.0]]).save(tmp_path / "mine")
    assert type(LowRank.load(tmp_path / "mine")) is Mine
    path = tmp_path / "mine" / "lowrank.json"
    path.write_text(path.read_text().replace("Mine", "Other"))
    with pytest.raises(ValueError, match="import the module that defines it"):
        LowRank.load(tmp_path / "mine")


def test_a_new_process_finds_the_class(tmp_path):
    sim = Similarity.from_matrix(psd(N))
    K = METHODS["rpcholesky"].function(sim, 5, rng=0)
    K.save(tmp_path / "K")
    code = "from simlib import LowRank; import sys; print(LowRank.load(sys.argv[1]))"
    assert run(code, tmp_path / "K").stdout.strip() == repr(K)


def run(code, *arguments):
    return python("-c", textwrap.dedent(code), *arguments)


def test_an_operator_residual_names_what_makes_factors_of_it(tmp_path):
    K = LowRank(np.ones((3, 1)), [[1.0]], residual=Answers(np.eye(3)))
    with pytest.raises(ValueError, match=r"cannot be saved.*base_rank=r"):
        K.save(tmp_path / "K")
    cheap = np.random.default_rng(0).standard_normal((N, 20))
    K = anchored(Similarity.from_matrix(np.exp(cheap @ cheap.T / 10)), 5, cheap, rng=0)
    assert K.weight
    with pytest.raises(ValueError, match=r"cannot be saved.*base_rank=r"):
        K.save(tmp_path / "K")
    assert not list(tmp_path.iterdir())


def test_the_working_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = LowRank(np.ones((2, 1)), [[1.0]])
    with pytest.raises(ValueError, match="name a folder in it"):
        answer.save(".")
    answer.save("here")
    assert Path.cwd() == tmp_path
    assert LowRank.load("here").trace() == 2


def test_a_private_folder_stays_private(tmp_path):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    for _ in range(2):
        LowRank(np.ones((2, 1)), [[1.0]]).save(folder)
        assert folder.stat().st_mode & 0o777 == 0o700


def test_only_saved_answers_are_overwritten(tmp_path):
    K, other = (LowRank(np.ones((n, 1)), [[1.0]]) for n in (2, 3))
    (tmp_path / "empty").mkdir()
    assert again(K, tmp_path / "empty").shape == (2, 2)
    assert again(other, tmp_path / "empty").shape == (3, 3)
    (tmp_path / "empty" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"notes\.txt besides a saved answer"):
        K.save(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    for name in ("file", "folder"):
        with pytest.raises(FileExistsError, match=r"not overwritten; name another"):
            K.save(tmp_path / name)
    (tmp_path / "folder" / "lowrank.json").write_text('{"format": "else"}')
    with pytest.raises(FileExistsError, match="no file of simlib"):
        K.save(tmp_path / "folder")
    assert (tmp_path / "folder" / "mine").read_text() == "mine"
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*; make it"):
        K.save(tmp_path / "none" / "K")
    objects = LowRank(np.ones((2, 1)), [[1.0]], landmarks=[object()])
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        objects.save(tmp_path / "objects")
    objects.landmarks, objects.method = None, object()
    with pytest.raises(TypeError, match="method is of type object"):
        objects.save(tmp_path / "objects")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"empty", "file", "folder"}
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match="holds no saved answer"):
            LowRank.load(place)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((40, 3))
    E = scipy.sparse.eye_array(40)
    LowRank(factor, np.eye(3), residual=E, landmarks=[1, 2, 3]).save(tmp_path / "K")
    return tmp_path / "K"


FILES = ("left.npy", "core.npy", "residual.npz", "landmarks.npy", "lowrank.json")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(folder, name, mode):
    path = folder / name
    whole = path.read_bytes()
    for cut in (b"", whole[:3], whole[: len(whole) // 2], whole[:-1], whole + b"1"):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=rf"{name} is damaged"):
            LowRank.load(folder, mmap_mode=mode)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=name):
        LowRank.load(folder, mmap_mode=mode)
    path.write_bytes(whole)
    LowRank.load(folder, mmap_mode=mode)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_header_that_is_none(folder, mode):
    path = folder / "left.npy"
    path.write_bytes(path.read_bytes().replace(b"}", b"(", 1))  # of the same size
    with pytest.raises(ValueError, match=r"left.npy is damaged"):
        LowRank.load(folder, mmap_mode=mode)


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_changed_byte_is_noticed(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 20)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=rf"{name} is damaged.*checksum"):
            LowRank.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "newer simlib, in format 2; this one reads formats up to 1"),
        ({"version": "1"}, "damaged: it does not tell its version"),
        ({"version": True}, "damaged: it does not tell its version"),
        ({"format": "another"}, "no file of simlib"),
        ({"class": None}, "damaged: it does not tell its class"),
        ({"parts": []}, "damaged: it does not tell its parts"),
        ({"parts": {}}, "damaged: .*left"),
        ({"parts": {"left": {"file": "../left.npy"}}}, r"names the file '\.\./left"),
        ({"parts": {"left": {}}}, "names the file None"),
        ({"parts": {"left": 1, "core": 2}}, "damaged: Factors are two-dimensional"),
        ({"parts": {"left": {"file": "left.npy"}}}, "bytes of None"),
    ],
)
def test_what_the_json_file_may_say_wrong(folder, change, message):
    path = folder / "lowrank.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        LowRank.load(folder)


@pytest.mark.parametrize("mode", MODES)
def test_no_pickle_is_read(folder, mode):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "sprung"),)

    path, facts = folder / "left.npy", folder / "lowrank.json"
    np.save(path, np.array([[Trap()]]), allow_pickle=True)
    listed = json.loads(facts.read_text())
    checksum = simlib.lowrank.saved._checksum(path)
    listed["parts"]["left"] |= {"bytes": path.stat().st_size, "crc32": checksum}
    facts.write_text(json.dumps(listed))
    with pytest.raises(ValueError, match=r"left\.npy is damaged"):
        LowRank.load(folder, mmap_mode=mode)
    assert not (folder / "sprung").exists()


# Interrupts


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("over", [True, False])  # files are open when it comes
def test_an_interrupt_before_any_line_leaves_a_whole_answer(tmp_path, over):
    old, new = (LowRank(np.ones((n, 1)), np.eye(1)) for n in (2, 3))
    place = tmp_path / "K"

    if over:
        old.save(tmp_path / "first")
    with Lines(simlib.lowrank.saved) as lines:
        new.save(tmp_path / "first")
    shapes = set()
    for moment in range(len(lines.seen)):
        if over:
            old.save(place)
        elif place.exists():
            place.rename(tmp_path / f"at {moment}")
        with pytest.raises(KeyboardInterrupt), Lines(simlib.lowrank.saved, stop=moment):
            new.save(place)
        if over or place.exists():
            shapes.add(LowRank.load(place).shape)
        left = {path.name for path in tmp_path.iterdir()} - {"K", "first"}
        assert all(name.startswith("at ") for name in left)
    assert shapes == {(2, 2), (3, 3)} if over else {(3, 3)}


@pytest.mark.skipif(os.name != "posix", reason="limits")
def test_a_full_disk_is_named_and_leaves_the_old_answer(tmp_path):
    old = LowRank(np.ones((2, 1)), np.eye(1))
    old.save(tmp_path / "K")
    code = """
        import resource, sys
        import numpy as np
        from simlib import LowRank
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        LowRank(np.ones((3000, 1)), np.eye(1)).save(sys.argv[1])
    """
    error = run(code, tmp_path / "K").stderr
    assert f"Nothing was saved in {tmp_path / 'K'}, as writing failed" in error
    assert error.strip().splitlines()[-1].startswith("OSError")
    same(old, LowRank.load(tmp_path / "K"))
    assert [path.name for path in Path(tmp_path).iterdir()] == ["K"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_process_leaves_the_old_answer(tmp_path):
    old = LowRank(np.ones((2, 1)), np.eye(1))
    old.save(tmp_path / "K")
    code = """
        import os, signal, sys
        import numpy as np
        import simlib.lowrank.saved
        from simlib import LowRank
        def write(*_): os.kill(os.getpid(), signal.SIGKILL)
        simlib.lowrank.saved._checksum = write
        LowRank(np.ones((3, 1)), np.eye(1)).save(sys.argv[1])
    """
    assert run(code, tmp_path / "K").returncode == -9
    same(old, LowRank.load(tmp_path / "K"))
    again(old, tmp_path / "K")
