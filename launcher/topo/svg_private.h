/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that draw a picture: svg.c is the whole of it, the others its parts. */
#ifndef DRARUN_LAUNCHER_TOPO_SVG_PRIVATE_H
#define DRARUN_LAUNCHER_TOPO_SVG_PRIVATE_H

#include "launcher/topo/view.h"
#include "lib/base/buf.h"

#define DEPTH_MAX 8u
#define CELL_W 134 /* a column */
#define BOX_W 120
#define BOX_H 54
#define HEAD 20     /* a group's title */
#define CORRIDOR 62 /* between the rows */
#define NO_LINKS 14 /* the same in a panel without a link */
#define LINE 17     /* of text above the panels */
#define CHIP_W 26   /* a worker in the job's line */
#define CHIP_H 20
#define NODES_MAX 48u /* in it */
#define MARGIN 16
#define GAP 10    /* between groups side by side */
#define WIDE 1100 /* two panels side by side when both fit */
#define CELL 18   /* a rail of a worker in the matrix, and a NIC's mark */
#define RAIL_W 24
#define ROW_H 23
#define LABEL_W 90
#define ROWS_MAX 32u /* of workers */

/* A GPU or NIC and where it is drawn. */
struct leaf {
    size_t gpu, nic; /* one of them TOPO_NONE */
    int32_t numa;
    const char *root;
    bool chain_known;
    int corridor; /* of its panel */
    struct pci_addr switches[DEPTH_MAX];
    size_t depth;
    int x, y;        /* of the box, inside its panel */
    int px, py;      /* of its panel */
    int left, right; /* of its column, inside the panel */
};

struct picture {
    const struct topo_view *view;
    struct leaf *leaves;
    size_t count;
    int width, height;
    bool used[TOPO_PATH_COUNT]; /* by a link */
    struct buf *out;
};

/* ---- svg_places.c: which box stands where ---- */

const struct topo_pci *svg_pci_of(const struct picture *p, const struct leaf *leaf);
/* One of gpu and nic is TOPO_NONE. */
void svg_add_leaf(struct picture *p, size_t gpu, size_t nic);
int svg_order(const void *a, const void *b); /* of leaves, for qsort */
/* Whether two leaves share their first `level` switches, and the root. */
bool svg_together(const struct leaf *a, const struct leaf *b, size_t level);
size_t svg_end_of_panel(const struct picture *p, size_t first);
size_t svg_deepest(const struct picture *p);
int svg_panel_height(const struct picture *p, const struct leaf *leaf);
/* How much wider than its columns a frame is on each side; inner ones have none. */
int svg_inset(const struct picture *p, size_t level);
/* Panels in rows, as many beside each other as fit, from y on; sets the picture's size. */
void svg_place_all(struct picture *p, int y);

/* ---- svg_shapes.c ---- */

void svg_text(struct picture *p, int x, int y, const char *class_name, const char *text);
void svg_rect(struct picture *p, int x, int y, int width, int height, const char *class_name);
/* Cut to what fits a width: a CPU list or a product may be long. */
void svg_fit(char *text, int width, int per_char);
const char *svg_path_class(enum topo_path path);
/* A square with a sign, which says the same as its colour; state: FABRIC_GOOD etc. */
void svg_cell(struct picture *p, int x, int y, char state);

/* ---- svg_panel.c: a NUMA node, with its frames, boxes and lines ---- */

void svg_panel(struct picture *p, size_t first, size_t end);
void svg_link(struct picture *p, const struct view_link *link);
void svg_box(struct picture *p, const struct leaf *leaf);

/* ---- svg_fabric.c: what the check of the NICs found ---- */

int svg_fabric_height(const struct topo_view *view);
void svg_fabric(struct picture *p, int y);

/* ---- svg_head.c: what stands above the panels ---- */

/* "4 workers on 2 nodes; 1 NVLink domain" */
void svg_job_words(const struct view_job *job, struct buf *out);
/* Title, the job, what the lines mean. Returns the y below; draw: false measures. */
int svg_head(struct picture *p, const char *title, const char *words, bool draw);

#endif
