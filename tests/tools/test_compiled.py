"""Libraries compiled from source: threads and processes that want the same one at once."""

from concurrent.futures import ThreadPoolExecutor

from tools import compiled


def test_library_of_several_threads_at_once_is_compiled_whole_for_each(tmp_path, monkeypatch):
    # Each thread's compiler wrote the same file, and the second that finished found it gone.
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(lambda _: compiled.library('extern "C" int one() { return 1; }'), range(4)))
    assert [file.exists() for file in files] == [True] * 4
    assert list(tmp_path.iterdir()) == [files[0]]
