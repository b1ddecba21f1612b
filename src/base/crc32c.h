/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli, RFC 3720 appendix B.4), as in iSCSI and ext4. */
#ifndef HFN_BASE_CRC32C_H
#define HFN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc is 0 for the first bytes, and the last result for each further part. */
uint32_t hfn_compute_crc32c(uint32_t crc, const void *bytes, size_t byte_count);

#endif
