/* SPDX-License-Identifier: MIT */
/*
 * The contract of an operating system.  Each folder of src/os implements all of these headers under
 * the same file names: linux/, and none/, which fails every call and proves that nothing else in
 * src/ needs a system.  Nothing here names a type, number or header of one system; what only one
 * system has stays in its folder.
 *
 *   error.h        errors as numbers and texts
 *   files.h        open, read, write, lock, identify, replace
 *   memory.h       pages, mapped files, memory shared between processes
 *   code_memory.h  pages near code, executable pages, changes of mapped code
 *   process.h      this process, and whether others exist
 *   threads.h      threads of the program, stopping them, waiting, workers
 *   modules.h      loaded modules
 *   clock.h        clocks
 *   datagrams.h    datagrams between processes; not included here
 *   descendants.h  the processes that a process started; not included here
 *   registry.h     the registry of classes; not included here
 *   remote.h       changing another process; not included here
 *   agent.h        entering another process with the agent; only windows/; not included here
 *   hot_path.h     calls for code inside the program's threads; not included here
 */
#ifndef HFN_OS_OS_H
#define HFN_OS_OS_H

#include "os/clock.h"
#include "os/code_memory.h"
#include "os/files.h"
#include "os/memory.h"
#include "os/modules.h"
#include "os/process.h"
#include "os/threads.h"

#endif
