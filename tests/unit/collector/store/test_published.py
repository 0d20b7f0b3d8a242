import threading

from flopwatch_collector.store.published import Published


def test_a_swap_waits_for_readers_of_what_was_before_and_not_for_later_ones() -> None:
    published = Published("old")
    swapped, gone = threading.Event(), threading.Event()

    def replace() -> None:
        published.swap(lambda value: value + " and new")
        swapped.set()
        published.wait_for_readers()
        gone.set()

    with published.borrowed() as before:
        thread = threading.Thread(target=replace)
        thread.start()
        assert swapped.wait(5)
        with published.borrowed() as after:
            assert (before, after) == ("old", "old and new")
        assert not gone.wait(0.05)
    thread.join(5)
    assert gone.is_set()
