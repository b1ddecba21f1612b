/* SPDX-License-Identifier: MIT */
/* Validation of UTF-8: names in files may be any bytes, while JSON and terminals accept only valid
 * sequences. */
#include "base/utf8.h"

size_t hfn_utf8_length(const unsigned char *s)
{
    unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] < 0x80) {
        return 1;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4) {
        return 0;
    }
    if (s[0] == 0xe0 || s[0] == 0xf0) {
        low = s[0] == 0xe0 ? 0xa0 : 0x90; /* below are overlong forms */
    }
    if (s[0] == 0xed || s[0] == 0xf4) {
        high = s[0] == 0xed ? 0x9f : 0x8f; /* above are surrogates, or more than U+10FFFF */
    }
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}
