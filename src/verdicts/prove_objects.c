/* SPDX-License-Identifier: MIT */
/*
 * Objects of the frame that are accessed with an index.  The analysis does not know an index, so an
 * access with one may go anywhere; and its base may be outside the object, because compilers fold
 * constants into it.  But a base that is the address of an object is an ordinary pointer to it, and
 * the index stays inside the object.  Evidence of an object is that the function passes exactly
 * this address to a callee, or copies or clears the object as a whole, anywhere in its code.
 */
#include "verdicts/prove.h"

static bool has_object(const hfn_prover *p, const hfn_stack_object *object)
{
    for (size_t i = 0; i < p->object_count; i++) {
        if (p->objects[i].at == object->at && p->objects[i].indexed == object->indexed) {
            return true;
        }
    }
    return false;
}

void hfn_prove_record_objects(hfn_prover *p, hfn_stack_state *state)
{
    for (uint32_t i = 0; i < state->object_count; i++) {
        if (!has_object(p, &state->objects[i])) {
            hfn_prove_append(p, (void **)&p->objects, &p->object_count, &p->object_capacity,
                             &state->objects[i], sizeof state->objects[i]);
        }
    }
    state->object_count = 0;
}

bool hfn_prove_indexes_objects(const hfn_prover *p)
{
    for (size_t i = 0; i < p->object_count; i++) {
        const hfn_stack_object shown = { p->objects[i].at, false };
        if (p->objects[i].indexed && !has_object(p, &shown)) {
            return false;
        }
    }
    return true;
}
