"""Compiled kernels on disk."""

from graphlift import cache, nvrtc


def test_code_is_kept_on_disk_by_content(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHLIFT_CACHE_DIR", str(tmp_path))
    cache._folder.cache_clear()
    nvrtc.write("text", b"code")
    assert nvrtc.read("text") == b"code"
    assert nvrtc.read("other") is None
    (kept,) = (tmp_path / "cuda").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert nvrtc.read("text") is None
    cache._folder.cache_clear()
