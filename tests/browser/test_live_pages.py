"""Pages that move by themselves, and what is done on them."""

import re

from playwright.sync_api import Page, Response, Route, expect

from browser.conftest import NewPage
from browser.site import Site


def test_given_a_job_at_work_when_it_prints_and_ends_then_an_open_page_shows_it(
    page: Page, site: Site
) -> None:
    flag = site.flag("watched")
    job = site.submit("until", "-p", f"flag={flag}")

    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    expect(page.locator("pre[data-output$=stdout]")).to_contain_text("started")
    flag.touch()

    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.locator("pre[data-output$=stdout]")).to_contain_text("done")
    expect(page.locator(".stages li")).to_have_class(re.compile("s-ok"))


def test_given_more_jobs_than_a_page_when_an_old_one_changes_then_counts_and_sorted_lists_show_it(
    new_page: NewPage, site: Site
) -> None:
    lines = "\n".join('{"n": 1}' for _ in range(60))
    submitted = site.shell.submit_lines(lines, "double", "--collection", "many", "--at", "2099-01-01T00:00")
    oldest = int(submitted.stdout.split()[0])
    newest_first, oldest_first = new_page(), new_page()
    _goto_until_quiet(newest_first, "/jobs?collection=many")
    _goto_until_quiet(oldest_first, "/jobs?collection=many&sort=job")
    expect(newest_first.get_by_role("link", name="scheduled 60")).to_be_visible()
    expect(oldest_first.locator(f"#job-{oldest}")).to_contain_text("scheduled")

    site.shell.ok("cancel", str(oldest))

    expect(oldest_first.locator(f"#job-{oldest}")).to_contain_text("cancelled")
    expect(newest_first.get_by_role("link", name="scheduled 59")).to_be_visible()


def _goto_until_quiet(page: Page, path: str) -> None:
    """Go to a page, and wait until it was fetched twice more: with its first event, and when none followed that."""

    def is_part(response: Response) -> bool:
        return response.url.endswith(path) and response.request.headers.get("hx-request") == "true"

    with page.expect_response(is_part):
        page.goto(path)
    page.wait_for_event("response", is_part)


def test_given_a_pending_job_when_the_reason_changes_then_an_open_page_shows_it(
    page: Page, site: Site
) -> None:
    site.shell.ok("queue", "narrow", "--create", "--limit", "1")
    flag = site.flag("narrow")
    first = site.submit("until", "-p", f"flag={flag}", "--queue", "narrow")
    page.goto(f"/jobs/{first}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    pending = site.submit("double", "-p", "n=1", "--queue", "narrow")
    _goto_until_quiet(page, f"/jobs/{pending}")
    expect(page.locator(".explained")).to_contain_text("at its limit")

    site.shell.ok("queue", "narrow", "--limit", "0", "--reason", "a new disk")

    expect(page.locator(".explained")).to_contain_text("is shut")
    site.shell.ok("queue", "narrow", "--limit", "1")
    flag.touch()


def test_given_output_that_is_searched_when_the_page_is_fetched_anew_then_no_line_is_lost(
    page: Page, site: Site
) -> None:
    job = site.ended(site.submit("tell", "-p", "text=needle\nhay"))
    page.goto(f"/jobs/{job}")
    stdout = page.locator("pre[data-output$=stdout]")
    page.locator("#find").fill("needle")
    expect(stdout).to_have_text("needle")

    page.evaluate(
        """path => new Promise(swapped => {
            document.body.addEventListener("htmx:afterSwap", ({ target }) => { if (target.id === "job") swapped(); });
            htmx.ajax("GET", path, { target: "#job", swap: "morph" });
        })""",
        f"/jobs/{job}",
    )
    page.locator("#find").fill("")

    assert stdout.text_content() == "needle\nhay\n"  # not later, when the output has been fetched anew


def test_given_output_that_is_fetched_whole_before_its_next_lines_arrive_then_no_line_is_shown_twice(
    page: Page, site: Site
) -> None:
    flag, held = site.flag("late-lines"), list[Route]()
    job = site.submit("until", "-p", f"flag={flag}")
    page.route("**/stdout?from=*", lambda route: held.append(route))
    with page.expect_request("**/stdout?from=*"):
        page.goto(f"/jobs/{job}")
    flag.touch()
    stdout = page.locator("pre[data-output$=stdout]")
    expect(stdout).to_contain_text("done")

    with page.expect_response("**/stdout?from=*"):
        held[0].continue_()
    page.wait_for_timeout(200)

    assert stdout.text_content() == "started\ndone\n"


def test_given_a_failed_job_when_its_cause_is_mended_and_it_is_retried_then_it_completes(
    page: Page, site: Site
) -> None:
    flag = site.flag("mended")
    job = site.ended(site.submit("fragile", "-p", f"flag={flag}"))
    page.goto(f"/jobs/{job}")
    expect(page.locator("[role=status].explained")).to_contain_text("the flag is not up")

    flag.touch()
    page.get_by_text("Retry…").click()
    page.locator("#retry-reason").fill("the flag is up")
    page.get_by_role("button", name="Retry", exact=True).click()

    expect(page.locator("#flash")).to_contain_text("1 job retried")
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.locator("#history")).to_contain_text("the flag is up")
    page.reload()
    expect(page.locator("#flash")).to_be_empty()


def test_given_a_hold_without_a_reason_when_sent_then_the_browser_asks_for_it_and_with_one_it_is_laid_and_lifted(
    page: Page, site: Site
) -> None:
    job = site.submit("double", "-p", "n=1", "--at", "2099-01-01T00:00")
    page.goto(f"/jobs/{job}")

    page.get_by_text("Hold…").click()
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.locator("#hold-reason")).to_be_focused()
    page.locator("#hold-reason").fill("the disk is full")
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.locator(".facts").first).to_contain_text("the disk is full")

    page.get_by_role("button", name="Release").click()
    expect(page.locator("#flash")).to_contain_text("released")


def test_given_a_job_at_work_when_cancelled_then_the_page_follows_to_the_end(page: Page, site: Site) -> None:
    job = site.submit("until", "-p", f"flag={site.flag('never')}")
    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")

    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the job").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")


def test_given_a_form_unfolded_when_the_page_moves_then_what_was_typed_and_the_focus_stay(
    page: Page, site: Site
) -> None:
    flag = site.flag("typing")
    job = site.submit("until", "-p", f"flag={flag}")
    page.goto(f"/jobs/{job}")
    page.get_by_text("Priority…").click()
    expect(page.locator("#priority-value")).to_be_focused()  # by the page, once the form has unfolded
    page.locator("#priority-reason").fill("half a sen")

    page.evaluate("htmx.trigger(document.body, 'spinney:job')")
    expect(page.locator("#job")).not_to_have_class(re.compile("htmx-request"))

    expect(page.locator("#priority-reason")).to_have_value("half a sen")
    expect(page.locator("#priority-reason")).to_be_focused()
    flag.touch()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")


def test_given_a_form_unfolded_when_actions_before_it_change_then_the_focus_stays(
    page: Page, site: Site
) -> None:
    job = site.submit("double", "-p", "n=1", "--at", "2099-01-01T00:00")
    site.shell.ok("hold", str(job), "--reason", "wait")
    page.goto(f"/jobs/{job}")
    page.get_by_text("Priority…").click()
    expect(page.locator("#priority-value")).to_be_focused()  # by the page, once the form has unfolded
    page.locator("#priority-reason").fill("half a sen")

    site.shell.ok("release", str(job))
    expect(page.get_by_role("button", name="Release")).to_have_count(0)

    expect(page.locator("#priority-reason")).to_be_focused()


def test_given_two_browsers_when_one_acts_then_the_other_sees_it(new_page: NewPage, site: Site) -> None:
    job = site.submit("double", "-p", "n=1", "--at", "2099-01-01T00:00")
    mine, other = new_page(), new_page(principal="viewer")
    mine.goto(f"/jobs/{job}")
    other.goto(f"/jobs/{job}")
    expect(other.locator("#live")).to_contain_text("live")

    mine.get_by_text("Cancel…").click()
    mine.get_by_role("button", name="Cancel the job").click()

    expect(other.get_by_role("heading", level=1)).to_contain_text("cancelled")


def test_given_a_list_when_jobs_are_chosen_then_the_verb_is_asked_about_and_done_to_them(
    page: Page, site: Site
) -> None:
    jobs = [
        site.submit("double", "-p", f"n={n}", "--at", "2099-01-01T00:00", "--collection", "bulk")
        for n in range(3)
    ]
    page.goto("/jobs?collection=bulk")
    for job in jobs[:2]:
        page.get_by_label(f"Select job {job}").check()
    expect(page.locator("[data-picked]")).to_have_text("With the 2 selected:")

    page.get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 2 jobs?")
    page.get_by_label("Reason").fill("no longer needed")
    page.get_by_role("button", name="Cancel 2 jobs").click()

    expect(page.locator("#flash")).to_contain_text("2 jobs cancelled")
    page.goto("/jobs?collection=bulk&state=scheduled")
    expect(page.locator("[data-row]")).to_have_count(1)


def test_given_an_open_page_when_the_server_starts_anew_then_it_says_so_and_goes_on(
    new_page: NewPage, site: Site
) -> None:
    page = new_page(loud=True)
    page.goto("/jobs?collection=anew")
    expect(page.locator("#live")).to_contain_text("live")

    site.stop()
    expect(page.locator("#live")).to_contain_text(re.compile("reconnecting|not live"))
    site.start()
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=30_000)

    site.submit("double", "-p", "n=1", "--collection", "anew")
    expect(page.locator("[data-row]")).to_have_count(1)


def test_given_keys_when_pressed_then_they_lead_about_and_can_be_turned_off(page: Page, site: Site) -> None:
    site.ended(site.submit("double", "-p", "n=1"))
    page.goto("/")

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("/jobs$"))
    expect(page.locator("#live")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(1)
    with page.expect_response("**/jobs"):
        page.evaluate("htmx.trigger(document.body, 'spinney:jobs')")
    expect(page.locator("[data-row].at")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).to_be_focused()
    page.keyboard.press("Escape")

    page.keyboard.press("?")
    page.get_by_label("Use keyboard shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).not_to_be_focused()


def test_given_the_switch_when_pressed_then_dark_stays_dark(page: Page) -> None:
    page.goto("/")
    for _ in range(2):
        page.get_by_role("button", name=re.compile("System|Light")).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    page.goto("/jobs")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 18, 15)"


def test_given_somebody_whose_session_has_ended_when_the_page_moves_then_he_is_led_to_sign_in(
    new_page: NewPage, site: Site
) -> None:
    page = new_page(loud=True)
    page.goto("/jobs")
    page.context.add_cookies([{"name": "principal", "value": "nobody", "url": site.url}])

    site.submit("double", "-p", "n=1")

    expect(page).to_have_url(re.compile(r"/sign-in\?next=%2Fjobs$"))
