/* SPDX-License-Identifier: MIT */
/* Finding earlier text by a hash of the next bytes: each hash has a chain of its latest positions,
 * and the longest of the first MAX_TRIES matches is taken, unless the next byte begins a longer
 * one. */
#include "exporters/html_pack.h"

#include <inttypes.h>
#include <string.h>

#define MIN_PACKED_BYTES 65536u /* smaller parts stay plain JSON */
#define HASH_BITS 17u
#define MAX_TRIES 8u
#define MAX_CHAIN (1u << 24)
#define MIN_COPY 5u
#define LONG_COPY 30u
#define LONG_ENOUGH 64u /* no longer match is looked for */
#define DIGITS 93u
#define MARK 0x7f
#define NO_POSITION UINT32_MAX

typedef struct packer {
    const uint8_t *text;
    uint32_t size, chain_mask;
    uint32_t *heads, *chain; /* the latest position of a hash; of a position: the one before */
    hfn_sink *sink;
} packer;

typedef struct match {
    uint32_t length, distance;
} match;

int32_t hfn_page_part_append(void *user, const void *bytes, size_t byte_count)
{
    hfn_page_part *part = user;
    void *text = part->text;
    if (byte_count > SIZE_MAX - part->size ||
        !hfn_grow_array(part->env, &text, &part->capacity, part->size + byte_count, 1)) {
        return 1;
    }
    part->text = text;
    memcpy(part->text + part->size, bytes, byte_count);
    part->size += byte_count;
    return 0;
}

void hfn_page_part_finish(hfn_page_part *part)
{
    hfn_free_memory(part->env, part->text, part->capacity);
    part->text = NULL;
    part->size = part->capacity = 0;
}

/* ---- Matches. */

static bool is_inside_character(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

static uint32_t hash_at(const packer *p, uint32_t at)
{
    uint64_t next = 0;
    memcpy(&next, p->text + at, MIN_COPY);
    return (uint32_t)((next * 0x9e3779b97f4a7c15u) >> (64 - HASH_BITS));
}

static uint32_t count_distance_digits(uint32_t distance)
{
    return distance < DIGITS * DIGITS ? 2 : distance < DIGITS * DIGITS * DIGITS ? 3 : 4;
}

static void insert_position(packer *p, uint32_t at)
{
    if (at + MIN_COPY <= p->size) {
        uint32_t hash = hash_at(p, at);
        p->chain[at & p->chain_mask] = p->heads[hash];
        p->heads[hash] = at;
    }
}

static uint32_t measure_match(const packer *p, uint32_t earlier, uint32_t at)
{
    uint32_t length = 0;
    while (at + length < p->size && p->text[earlier + length] == p->text[at + length]) {
        length++;
    }
    while (length > 0 && at + length < p->size && is_inside_character(p->text[at + length])) {
        length--;
    }
    return length;
}

/* The number of bytes that a copy saves, 0 if it saves none. */
static uint32_t get_gain(match m)
{
    uint32_t cost = 2 + count_distance_digits(m.distance);
    return m.length > cost && m.length >= MIN_COPY ? m.length - cost : 0;
}

static match find_match(const packer *p, uint32_t at)
{
    match best = { 0, 0 };
    if (at + MIN_COPY > p->size || is_inside_character(p->text[at])) {
        return best;
    }
    uint32_t earlier = p->heads[hash_at(p, at)];
    for (uint32_t tries = 0;
         tries < MAX_TRIES && earlier != NO_POSITION && best.length < LONG_ENOUGH; tries++) {
        match found = { 0, at - earlier };
        if (found.distance > p->chain_mask) {
            break;
        }
        if (at + best.length < p->size &&
            p->text[earlier + best.length] == p->text[at + best.length]) {
            found.length = measure_match(p, earlier, at);
            best = get_gain(found) > get_gain(best) ? found : best;
        }
        uint32_t before = p->chain[earlier & p->chain_mask];
        earlier = before < earlier ? before : NO_POSITION;
    }
    return best;
}

/* ---- Output. */

static void put_digit(packer *p, uint32_t digit)
{
    char c = (char)('!' + digit + (digit >= '<' - '!'));
    hfn_sink_bytes(p->sink, &c, 1);
}

static void put_copy(packer *p, match m)
{
    static const uint32_t powers[] = { 1, DIGITS, DIGITS * DIGITS, DIGITS * DIGITS * DIGITS };
    uint32_t digits = count_distance_digits(m.distance), more = m.length - MIN_COPY;
    hfn_sink_bytes(p->sink, "\x7f", 1);
    put_digit(p, 3 * (more < LONG_COPY ? more : LONG_COPY) + digits - 2);
    if (more >= LONG_COPY) {
        for (more -= LONG_COPY; more >= DIGITS - 1; more -= DIGITS - 1) {
            put_digit(p, DIGITS - 1);
        }
        put_digit(p, more);
    }
    for (uint32_t i = digits; i-- > 0;) {
        put_digit(p, m.distance / powers[i] % DIGITS);
    }
}

static void put_literal(packer *p, uint32_t at)
{
    hfn_sink_bytes(p->sink, (const char *)p->text + at, 1);
    if (p->text[at] == MARK) {
        hfn_sink_bytes(p->sink, " ", 1);
    }
}

static void pack_text(packer *p)
{
    match next = find_match(p, 0);
    for (uint32_t at = 0; at < p->size && !p->sink->failed;) {
        match m = next;
        insert_position(p, at);
        next = m.length < LONG_ENOUGH ? find_match(p, at + 1) : m;
        if (get_gain(m) == 0 || get_gain(next) > get_gain(m)) {
            put_literal(p, at++);
            continue;
        }
        put_copy(p, m);
        for (uint32_t end = at++ + m.length; at < end; at++) {
            insert_position(p, at);
        }
        next = find_match(p, at);
    }
}

static uint32_t choose_chain_length(size_t size)
{
    uint32_t length = MIN_PACKED_BYTES;
    while (length < size && length < MAX_CHAIN) {
        length *= 2;
    }
    return length;
}

bool hfn_page_part_write(const hfn_page_part *part, hfn_sink *sink)
{
    if (part->size < MIN_PACKED_BYTES || part->size >= UINT32_MAX - 65536) {
        hfn_sink_bytes(sink, part->text, part->size);
        return true;
    }
    uint32_t length = choose_chain_length(part->size);
    size_t head_bytes = sizeof(uint32_t) << HASH_BITS, chain_bytes = sizeof(uint32_t) * length;
    packer p = { .text = (const uint8_t *)part->text,
                 .size = (uint32_t)part->size,
                 .chain_mask = length - 1,
                 .sink = sink };
    p.heads = hfn_allocate_unset(part->env, head_bytes);
    p.chain = hfn_allocate_unset(part->env, chain_bytes);
    bool ok = p.heads && p.chain;
    if (ok) {
        memset(p.heads, 0xff, head_bytes);
        hfn_sink_format(sink, "%" PRIu32 "\n", p.size);
        pack_text(&p);
    }
    hfn_free_memory(part->env, p.heads, head_bytes);
    hfn_free_memory(part->env, p.chain, chain_bytes);
    return ok;
}
