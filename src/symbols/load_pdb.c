/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load_pdb: a program database, checked against its image, as symbols. */
#include "symbols/inside.h"

hotfn_status hotfn_symbols_pdb_from_bytes(hotfn_symbols **out, const void *bytes,
                                          uint64_t byte_count, const char *name,
                                          const hotfn_image *image,
                                          const hotfn_symbols_options *options,
                                          const hotfn_env *env, hotfn_error *err)
{
    (void)out, (void)bytes, (void)byte_count, (void)image, (void)options, (void)env;
    return hfn_fail(err, HOTFN_E_UNSUPPORTED, name, HOTFN_NO_OFFSET, "PDB files are not read yet");
}

hotfn_status hotfn_symbols_load_pdb(hotfn_symbols **out, const char *path, const hotfn_image *image,
                                    const hotfn_symbols_options *options, const hotfn_env *env,
                                    hotfn_error *err)
{
    return hotfn_symbols_pdb_from_bytes(out, NULL, 0, path, image, options, env, err);
}
