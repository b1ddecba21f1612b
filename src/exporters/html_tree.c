/* SPDX-License-Identifier: MIT */
/* The nodes of the call tree and the edges of the page of a record. */
#include "exporters/html_data.h"

/* In a larger tree, nodes with less than 1/MIN_SHARE of the time and of the bytes are omitted. */
#define MAX_NODES 200000u
#define MIN_SHARE 50000u

/* Waiting is omitted.  The total of a call that was still open at the end (main, when exit() was
 * called) is not known; the self time and the totals of its callees are its lower bound. */
static void sum_nodes(hfn_page *p)
{
    hotfn_record_node n;
    for (uint32_t i = p->view->time.node_count; i-- > 0;) {
        hfn_view_node(p->view, i, &n);
        hfn_page_sum *sum = &p->sums[i];
        sum->waited_ns += n.waited_ns;
        n.total_ns -= sum->waited_ns < n.total_ns ? sum->waited_ns : n.total_ns;
        sum->ns = n.total_ns > sum->ns + n.self_ns ? n.total_ns : sum->ns + n.self_ns;
        sum->bytes += n.self_alloc.allocated_bytes;
        p->all.ns += n.parent == HOTFN_NO_NODE ? sum->ns : 0;
        p->all.bytes += n.self_alloc.allocated_bytes;
        if (n.parent != HOTFN_NO_NODE) {
            p->sums[n.parent].ns += sum->ns;
            p->sums[n.parent].waited_ns += sum->waited_ns;
            p->sums[n.parent].bytes += sum->bytes;
        }
    }
}

void hfn_page_choose_nodes(hfn_page *p)
{
    sum_nodes(p);
    bool all = p->view->time.node_count <= MAX_NODES;
    uint32_t index = 0;
    hotfn_record_node n;
    for (uint32_t i = 0; i < p->view->time.node_count; i++) {
        hfn_view_node(p->view, i, &n);
        bool kept = (all || p->sums[i].ns > p->all.ns / MIN_SHARE ||
                     p->sums[i].bytes > p->all.bytes / MIN_SHARE) &&
                    n.function != HOTFN_NO_FUNCTION &&
                    (n.parent == HOTFN_NO_NODE || p->indices[n.parent] != UINT32_MAX);
        p->indices[i] = kept ? index++ : UINT32_MAX;
        p->omitted += !kept;
    }
}

enum {
    NODE_PARENT,
    NODE_FUNCTION,
    NODE_THREAD,
    NODE_CALLS,
    NODE_TOTAL,
    NODE_SELF,
    NODE_BYTES,
    NODE_BELOW
};

static hotfn_json *create_node_field(const hfn_page *p, const hotfn_record_node *n, uint32_t i,
                                     int field)
{
    switch (field) {
    case NODE_PARENT:
        return hfn_page_create_index(
            n->parent == HOTFN_NO_NODE ? UINT32_MAX : p->indices[n->parent], UINT32_MAX);
    case NODE_FUNCTION: return hotfn_json_create_number(p->ranks[n->function]);
    case NODE_THREAD: return hotfn_json_create_number(n->thread);
    case NODE_CALLS: return hotfn_json_create_number(n->calls);
    case NODE_TOTAL: return hotfn_json_create_number(p->sums[i].ns);
    case NODE_BYTES: return hotfn_json_create_number(n->self_alloc.allocated_bytes);
    case NODE_BELOW: return hotfn_json_create_number(p->sums[i].bytes);
    default: return hotfn_json_create_number(n->self_ns);
    }
}

void hfn_page_write_nodes(hfn_page *p)
{
    static const char *const keys[] = { "parent", "function", "thread", "calls",
                                        "total",  "self",     "bytes",  "below" };
    int fields = p->view->time.flags & HOTFN_TIMING_ALLOC ? NODE_BELOW + 1 : NODE_BYTES;
    hotfn_record_node n;
    hotfn_json_begin_object(p->out, "nodes");
    for (int field = 0; field < fields; field++) {
        hotfn_json_begin_array(p->out, keys[field]);
        for (uint32_t i = 0; i < p->view->time.node_count && !p->sink->failed; i++) {
            hfn_view_reach(p->view, i, p->view->time.node_count);
            if (p->indices[i] != UINT32_MAX) {
                hfn_view_node(p->view, i, &n);
                hotfn_json_write(p->out, NULL, create_node_field(p, &n, i, field));
            }
        }
        hotfn_json_end(p->out);
    }
    hotfn_json_end(p->out);
}

#define EDGE_COLUMN(name, expression)                                                              \
    static hotfn_json *create_edge_##name(hfn_page *p, uint32_t i)                                 \
    {                                                                                              \
        hotfn_record_edge e;                                                                       \
        hfn_view_edge(p->view, i, &e);                                                             \
        return expression;                                                                         \
    }
EDGE_COLUMN(caller, hfn_page_create_rank(p, e.caller))
EDGE_COLUMN(callee, hfn_page_create_rank(p, e.callee))
EDGE_COLUMN(calls, hotfn_json_create_number(e.calls))
EDGE_COLUMN(total, hotfn_json_create_number(e.total_ns))

void hfn_page_write_edges(hfn_page *p)
{
    uint32_t count = p->view->time.edge_count;
    hotfn_json_begin_object(p->out, "edges");
    hfn_page_write_column(p, "caller", 0, count, create_edge_caller);
    hfn_page_write_column(p, "callee", 0, count, create_edge_callee);
    hfn_page_write_column(p, "calls", 0, count, create_edge_calls);
    hfn_page_write_column(p, "total", 0, count, create_edge_total);
    hotfn_json_end(p->out);
}
