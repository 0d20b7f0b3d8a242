"""Results of other threads on the event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from flopwatch_collector.api.answers import Answers

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result(30)


def completed_by_a_thread(*futures: "Future[int]") -> threading.Thread:
    def complete() -> None:
        for number, future in enumerate(futures):
            future.set_result(number)

    thread = threading.Thread(target=complete)
    thread.start()
    return thread


def test_each_waiter_gets_its_own_result() -> None:
    async def ask() -> list[int]:
        answers = Answers[int]()
        futures = [Future[int]() for _ in range(50)]
        waiting = [answers.of(future) for future in futures]
        thread = completed_by_a_thread(*futures)
        results = await asyncio.wait_for(asyncio.gather(*waiting), 10)
        thread.join()
        return results

    assert run(ask()) == list(range(50))


def test_a_failure_is_raised_where_it_is_awaited() -> None:
    async def ask() -> None:
        future = Future[int]()
        waiting = Answers[int]().of(future)
        future.set_exception(KeyError("gone"))
        await asyncio.wait_for(waiting, 10)

    with pytest.raises(KeyError):
        run(ask())


def test_one_that_was_given_up_does_not_disturb_the_others() -> None:
    async def ask() -> int:
        answers = Answers[int]()
        first, second = Future[int](), Future[int]()
        given_up, waiting = answers.of(first), answers.of(second)
        given_up.cancel()
        thread = completed_by_a_thread(first, second)
        result = await asyncio.wait_for(waiting, 10)
        thread.join()
        return result

    assert run(ask()) == 1


def test_a_loop_that_is_gone_is_no_error() -> None:
    answers, future = Answers[int](), Future[int]()

    async def ask() -> None:
        answers.of(future)

    run(ask())

    future.set_result(1)
    assert future.result() == 1
