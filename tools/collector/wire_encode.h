/* SPDX-License-Identifier: MIT */
/* Encode a record in the compact format of wire.h.  Only counted functions, the last component of
 * each module's path, and times leave the machine: no folder, command line or user name. */
#ifndef HOTFN_COLLECTOR_WIRE_ENCODE_H
#define HOTFN_COLLECTOR_WIRE_ENCODE_H

#include "buffer.h"

#include <hotfn.h>
#include <hotfn/lowlevel/functions.h>
#include <hotfn/lowlevel/symbols.h>

/* may_run: the program may still run; the run then ends now.  HOTFN_OK, HOTFN_E_STATE (a merged,
 * broken or still running record), HOTFN_E_LIMIT (a count does not fit into 64 bits),
 * HOTFN_E_NO_MEMORY. */
hotfn_status wire_encode_run(byte_buffer *out, const hotfn_record *record, bool may_run,
                             hotfn_error *err);
hotfn_status wire_encode_names(byte_buffer *out, const hotfn_record *record, bool may_run,
                               hotfn_error *err);

/* The names of all functions of an image, or of all symbols of a PDB, whose image has its id; file
 * is the name of the image. */
void wire_encode_functions(byte_buffer *out, const hotfn_image_info *info, const char *file,
                           const hotfn_functions *functions, const hotfn_env *env);
void wire_encode_symbols(byte_buffer *out, const hotfn_symbols_info *info, const char *file,
                         const hotfn_symbols *symbols);

#endif
