// SPDX-License-Identifier: MIT
// LLVM's demangler behind a C call.  The signature of llvm::demangle is unchanged since LLVM 9; it
// returns its argument if it cannot demangle it.
#include "demangle.h"

#include <cstring>
#include <llvm/Demangle/Demangle.h>
#include <string>

size_t demangle_by_llvm(const char *mangled, char *out, size_t out_bytes)
{
    try {
        const std::string text = llvm::demangle(mangled);
        if (text.size() >= out_bytes || text.find('\0') != std::string::npos || text == mangled) {
            return 0;
        }
        std::memcpy(out, text.c_str(), text.size() + 1);
        return text.size();
    } catch (...) {
        return 0; // no memory
    }
}
