/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/streams/lines.h"
#include "lib/base/buf.h"

struct sheet {
    struct buf text;
    size_t credit[4];
    size_t starts; /* of the clock */
    bool waits;
    struct lines *lines;
};

static void on_emit(void *arg, uint32_t agent, size_t credit, const void *data, size_t length)
{
    struct sheet *s = arg;
    s->credit[agent] += credit;
    buf_add(&s->text, data, length);
}

static void on_waiting(void *arg, bool waits)
{
    struct sheet *s = arg;
    s->starts += waits;
    s->waits = waits;
}

static void open_sheet(struct sheet *s, uint32_t ranks, enum lines_form form)
{
    struct lines_owner owner = {on_emit, on_waiting, s};
    *s = (struct sheet){0};
    s->lines = lines_new(ranks, form, &owner);
    assert_non_null(s->lines);
}

static void close_sheet(struct sheet *s, const char *expected)
{
    assert_string_equal(s->text.data ? s->text.data : "", expected);
    lines_free(s->lines);
    buf_done(&s->text);
}

static void add(struct sheet *s, uint32_t rank, const char *text, bool partial)
{
    assert_int_equal(lines_add(s->lines, rank % 4, rank, text, strlen(text), partial), 0);
}

static void whole_lines_pass(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 2, LINES_PLAIN);
    add(&s, 0, "a\nb\n", false);
    add(&s, 1, "c\n", false);
    assert_false(s.waits);
    close_sheet(&s, "a\nb\nc\n");
}

static void an_unfinished_line_is_waited_for(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 3, LINES_PLAIN);
    add(&s, 0, "a", true);
    add(&s, 1, "b\n", false);
    add(&s, 2, "c", true);
    add(&s, 1, "d\n", false);
    assert_true(s.waits);
    assert_int_equal(s.credit[1], 0);
    add(&s, 0, "A\n", false);
    /* now rank 2's line is unfinished */
    assert_string_equal(s.text.data, "aA\nb\nc");
    assert_int_equal(s.credit[1], 2);
    assert_true(s.waits);
    add(&s, 2, "C\n", false);
    assert_false(s.waits);
    close_sheet(&s, "aA\nb\ncC\nd\n");
}

static void those_passed_over_come_in_order(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 4, LINES_PLAIN);
    add(&s, 0, "0", true);
    add(&s, 1, "1", true);
    add(&s, 2, "2\n", false);
    add(&s, 3, "3\n", false);
    add(&s, 1, "1\n", false);
    add(&s, 2, "2\n", false);
    add(&s, 0, "0\n", false);
    assert_false(s.waits);
    close_sheet(&s, "00\n11\n2\n3\n2\n");
}

static void the_end_of_a_rank_ends_its_line(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 2, LINES_PLAIN);
    add(&s, 0, "a", true);
    add(&s, 1, "b\n", false);
    lines_rank_ended(s.lines, 0);
    assert_false(s.waits);
    close_sheet(&s, "ab\n");
}

/* As of ranks whose worker was lost. */
static void the_end_of_all_leaves_nothing_behind(void **state)
{
    struct sheet s;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        open_sheet(&s, 4, i ? LINES_LABELLED : LINES_PLAIN);
        add(&s, 0, "a", true);
        add(&s, 1, "b", true);
        add(&s, 2, "c\n", false);
        add(&s, 1, "B", true);
        add(&s, 3, "d\n", false);
        lines_finish(s.lines);
        assert_false(s.waits);
        assert_int_equal(s.credit[0] + s.credit[1] + s.credit[2] + s.credit[3], 7);
        close_sheet(&s, i ? "[0] a\n[1] bB\n[2] c\n[3] d\n" : "abBc\nd\n");
    }
    open_sheet(&s, 2, LINES_LABELLED);
    add(&s, 1, "the last", true);
    lines_finish(s.lines);
    lines_finish(s.lines);
    close_sheet(&s, "[1] the last\n");
}

/* The queue is not gone through for each. */
static void the_end_of_all_takes_one_turn_for_single_pieces(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 6, LINES_PLAIN);
    for (uint32_t rank = 0; rank < 6; rank++) {
        char text[] = {(char)('0' + rank), '\0'};
        add(&s, rank, text, true);
    }
    assert_int_equal(s.starts, 1);
    lines_finish(s.lines);
    assert_int_equal(s.starts, 1);
    assert_false(s.waits);
    close_sheet(&s, "012345");
}

static void a_broken_line_holds_nobody_up_again(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 2, LINES_PLAIN);
    add(&s, 0, "a", true);
    add(&s, 1, "b\n", false);
    lines_break(s.lines);
    add(&s, 0, "a", true);
    add(&s, 1, "c\n", false);
    assert_false(s.waits);
    add(&s, 0, "a\n", false);
    /* but its next line does */
    add(&s, 0, "d", true);
    add(&s, 1, "e\n", false);
    assert_true(s.waits);
    add(&s, 0, "D\n", false);
    close_sheet(&s, "ab\nac\na\ndD\ne\n");
}

/* As of progress bars: those that came before the clock was started are not waited for in turn. */
static void all_unfinished_lines_take_two_turns(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 6, LINES_PLAIN);
    add(&s, 0, "0", true);
    for (uint32_t rank = 1; rank < 6; rank++) {
        char text[] = {(char)('0' + rank), '\0'};
        add(&s, rank, "-\n", false);
        add(&s, rank, text, true);
    }
    lines_break(s.lines);
    assert_string_equal(s.text.data, "0-\n1");
    lines_break(s.lines);
    assert_false(s.waits);
    add(&s, 3, "3", true);
    add(&s, 4, "\n", false);
    assert_false(s.waits);
    for (uint32_t rank = 0; rank < 6; rank++)
        lines_rank_ended(s.lines, rank);
    assert_int_equal(s.credit[0] + s.credit[1] + s.credit[2] + s.credit[3], 6 + 5 * 2 + 2);
    close_sheet(&s, "0-\n1-\n2-\n3-\n4-\n53\n");
}

/* Its rest has come, or it came while the clock ran, or it is longer than a progress bar. */
static void a_line_that_need_not_break_does_not(void **state)
{
    static char piece[20 * 1024];
    struct sheet s;
    (void)state;
    memset(piece, 'x', sizeof piece - 1);
    open_sheet(&s, 6, LINES_PLAIN);
    add(&s, 0, "0", true);
    add(&s, 1, "1", true);
    add(&s, 2, "2", true);
    add(&s, 1, "1\n", false);
    lines_break(s.lines);
    assert_string_equal(s.text.data, "011\n2");
    add(&s, 3, piece, true);
    add(&s, 4, "4", true);
    lines_break(s.lines); /* now 3's is waited for, and then 4's */
    add(&s, 5, "5\n", false);
    add(&s, 4, "4\n", false);
    add(&s, 3, "\n", false);
    assert_false(s.waits);
    assert_int_equal(s.text.len, strlen("011\n2") + sizeof piece + strlen("44\n5\n"));
    assert_string_equal(s.text.data + s.text.len - strlen("x\n44\n5\n"), "x\n44\n5\n");
    lines_free(s.lines);
    buf_done(&s.text);
}

static void labels_stand_before_each_line(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 11, LINES_LABELLED);
    add(&s, 0, "a\nb\n", false);
    add(&s, 10, "c", true);
    add(&s, 10, "d\ne\n", false);
    add(&s, 3, "no newline", false);
    add(&s, 4, "\n\n", false);
    assert_int_equal(s.credit[3], strlen("no newline"));
    close_sheet(&s, "[ 0] a\n[ 0] b\n[10] cd\n[10] e\n[ 3] no newline\n[ 4] \n[ 4] \n");
}

static void a_labelled_line_is_finished_at_the_end(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 2, LINES_LABELLED);
    add(&s, 0, "a", true);
    add(&s, 1, "b\n", false);
    lines_rank_ended(s.lines, 0);
    lines_rank_ended(s.lines, 1);
    close_sheet(&s, "[0] a\n[1] b\n");
}

static void a_broken_labelled_line_goes_on_in_a_new_one(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 2, LINES_LABELLED);
    add(&s, 0, "a", true);
    add(&s, 1, "b\n", false);
    lines_break(s.lines);
    add(&s, 0, "A\n", false);
    close_sheet(&s, "[0] a\n[1] b\n[0] A\n");
}

/* The agent of the unfinished line keeps room for its rest, whatever else it has sent. */
static void much_output_breaks_no_line(void **state)
{
    struct sheet s;
    static char line[64 * 1024];
    (void)state;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    open_sheet(&s, 8, LINES_PLAIN);
    add(&s, 0, "a", true);
    for (int i = 0; i < 16; i++)
        assert_int_equal(lines_add(s.lines, 0, 4, line, sizeof line, false), 0);
    assert_int_equal(s.text.len, 1);
    add(&s, 0, "A\n", false);
    assert_memory_equal(s.text.data, "aA\nx", 4);
    assert_int_equal(s.text.len, 3 + 16 * sizeof line);
    assert_false(s.waits);
    lines_free(s.lines);
    buf_done(&s.text);
}

/* Whatever the order: each rank's bytes come out in theirs, and all credit is given back. */
static void any_order_keeps_each_rank_in_order(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 200; round++) {
        struct sheet s;
        unsigned int next[6] = {0}, total[4] = {0};
        open_sheet(&s, 6, LINES_PLAIN);
        for (int i = 0; i < 300; i++) {
            uint32_t rank = (uint32_t)rand() % 6;
            bool partial = rand() % 3 == 0;
            char text[16];
            snprintf(text, sizeof text, "<%u:%u>%s", rank, next[rank]++, partial ? "" : "\n");
            total[rank % 4] += (unsigned int)strlen(text);
            add(&s, rank, text, partial);
            if (rand() % 20 == 0)
                lines_break(s.lines);
        }
        for (uint32_t rank = 0; rank < 6; rank++)
            lines_rank_ended(s.lines, rank);
        assert_false(s.waits);
        for (int i = 0; i < 4; i++)
            assert_int_equal(s.credit[i], total[i]);
        unsigned int seen[6] = {0};
        for (const char *p = s.text.data; (p = strchr(p, '<')); p++) {
            unsigned int rank = 0, number = 0;
            assert_int_equal(sscanf(p, "<%u:%u>", &rank, &number), 2);
            assert_int_equal(number, seen[rank]++);
        }
        assert_memory_equal(seen, next, sizeof seen);
        lines_free(s.lines);
        buf_done(&s.text);
    }
}

static void frames_hold_pieces_and_keep_nobody_waiting(void **state)
{
    struct sheet s;
    (void)state;
    open_sheet(&s, 12, LINES_FRAMED);
    add(&s, 3, "one\ntw", true);
    add(&s, 11, "other\n", false);
    assert_false(s.waits);
    add(&s, 3, "o\n\n", false);
    add(&s, 4, "no newline", false);
    lines_rank_ended(s.lines, 4);
    close_sheet(&s, "[3] one\n[3+] tw\n[11] other\n[3] o\n[3] \n[4+] no newline\n");
    open_sheet(&s, 2, LINES_FRAMED_ERR);
    add(&s, 1, "a\nb", true);
    close_sheet(&s, "[1:err] a\n[1:err+] b\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_pass),
        cmocka_unit_test(an_unfinished_line_is_waited_for),
        cmocka_unit_test(those_passed_over_come_in_order),
        cmocka_unit_test(the_end_of_a_rank_ends_its_line),
        cmocka_unit_test(the_end_of_all_leaves_nothing_behind),
        cmocka_unit_test(the_end_of_all_takes_one_turn_for_single_pieces),
        cmocka_unit_test(a_broken_line_holds_nobody_up_again),
        cmocka_unit_test(all_unfinished_lines_take_two_turns),
        cmocka_unit_test(a_line_that_need_not_break_does_not),
        cmocka_unit_test(labels_stand_before_each_line),
        cmocka_unit_test(a_labelled_line_is_finished_at_the_end),
        cmocka_unit_test(a_broken_labelled_line_goes_on_in_a_new_one),
        cmocka_unit_test(frames_hold_pieces_and_keep_nobody_waiting),
        cmocka_unit_test(much_output_breaks_no_line),
        cmocka_unit_test(any_order_keeps_each_rank_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
