/* SPDX-License-Identifier: MIT */
/* The commands of hotfn-collector that do not serve.  They may run while the collector serves. */
#ifndef HOTFN_COLLECTOR_COMMANDS_H
#define HOTFN_COLLECTOR_COMMANDS_H

#include "options.h"

/* Each returns the exit status; words are those after the command. */
int command_token(const collector_options *o, char **words);
/* words begin with the command: import, prune, compact or backup. */
int command_data(const collector_options *o, char **words);

/* Lock the folder: two collectors would both number functions.  Returns a descriptor, or -1 after a
 * message. */
int lock_folder(const char *folder);
int report_refusal(const refusal *why);

#endif
