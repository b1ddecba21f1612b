/* SPDX-License-Identifier: MIT */
/* The agent's own printf family: %d %i %u %x %c %s %%, with flags 0 and -, width, precision (for %s
 * only), and the sizes l, ll and z. */
#include "agent/libc/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct output {
    char *to;
    size_t room, length; /* length: of the whole output, including bytes that did not fit */
} output;

typedef struct conversion {
    bool zeros, left;     /* flags 0 and - */
    int width, precision; /* precision -1: none */
    int longs;            /* number of l's; z counts as 2 on 64-bit systems, else as 1 */
} conversion;

static void put(output *o, char byte)
{
    if (o->length + 1 < o->room) {
        o->to[o->length] = byte;
    }
    o->length++;
}

static void put_padded(output *o, const conversion *c, const char *text, size_t length)
{
    size_t pad = c->width > 0 && (size_t)c->width > length ? (size_t)c->width - length : 0;

    if (c->zeros && !c->left && length > 0 && *text == '-') {
        put(o, *text++);
        length--;
    }
    for (size_t i = 0; i < pad && !c->left; i++) {
        put(o, c->zeros ? '0' : ' ');
    }
    for (size_t i = 0; i < length; i++) {
        put(o, text[i]);
    }
    for (size_t i = 0; i < pad && c->left; i++) {
        put(o, ' ');
    }
}

static void put_number(output *o, const conversion *c, uint64_t number, unsigned base,
                       bool negative)
{
    char digits[24];
    size_t at = sizeof digits;

    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    if (negative) {
        digits[--at] = '-';
    }
    put_padded(o, c, digits + at, sizeof digits - at);
}

static int read_count(const char **format, va_list *args)
{
    int count = 0;

    if (**format == '*') {
        (*format)++;
        return va_arg(*args, int);
    }
    for (; **format >= '0' && **format <= '9'; (*format)++) {
        count = count * 10 + (**format - '0');
    }
    return count;
}

static conversion read_conversion(const char **format, va_list *args)
{
    conversion c = { .precision = -1 };

    for (; **format == '0' || **format == '-'; (*format)++) {
        *(**format == '0' ? &c.zeros : &c.left) = true;
    }
    c.width = read_count(format, args);
    if (**format == '.') {
        (*format)++;
        c.precision = read_count(format, args);
    }
    for (; **format == 'l' || **format == 'z'; (*format)++) {
        c.longs += **format == 'z' && sizeof(size_t) == 8 ? 2 : 1;
    }
    return c;
}

static uint64_t take_number(const conversion *c, bool is_signed, va_list *args)
{
    bool wide = c->longs > 1 || (c->longs == 1 && sizeof(long) == 8);

    if (wide) {
        return va_arg(*args, unsigned long long);
    }
    if (is_signed) {
        return (uint64_t)va_arg(*args, int);
    }
    return va_arg(*args, unsigned);
}

static void convert(output *o, const conversion *c, char kind, va_list *args)
{
    const char *text;
    char byte = kind;
    uint64_t number;

    switch (kind) {
    case 'd':
    case 'i':
        number = take_number(c, true, args);
        put_number(o, c, (int64_t)number < 0 ? 0 - number : number, 10, (int64_t)number < 0);
        return;
    case 'u':
    case 'x': put_number(o, c, take_number(c, false, args), kind == 'u' ? 10 : 16, false); return;
    case 's':
        text = va_arg(*args, const char *);
        text = text ? text : "(null)";
        put_padded(o, c, text, strnlen(text, c->precision >= 0 ? (size_t)c->precision : SIZE_MAX));
        return;
    case 'c': byte = (char)va_arg(*args, int); break;
    default: break;
    }
    put_padded(o, c, &byte, 1);
}

int hfn_agent_format(char *to, size_t room, const char *format, va_list given)
{
    output o = { to, room, 0 };
    va_list args;

    va_copy(args, given);
    for (; *format; format++) {
        if (*format != '%') {
            put(&o, *format);
            continue;
        }
        format++;
        conversion c = read_conversion(&format, &args);
        if (*format == 0) {
            break;
        }
        convert(&o, &c, *format, &args);
    }
    va_end(args);
    if (room > 0) {
        to[o.length < room ? o.length : room - 1] = 0;
    }
    return (int)o.length;
}
