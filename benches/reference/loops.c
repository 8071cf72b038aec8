/* The loops are written as a C programmer would write them for this one purpose: buffers from malloc, request arrays on
 * the stack, MPI_STATUSES_IGNORE. Nothing is checked inside a loop but the code of MPI's calls. */
#include "loops.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCY_BYTES = 8, BANDWIDTH_BYTES = 128 * 1024, WINDOW = 8, TO_LEFT = 1, TO_RIGHT = 2 };

static MPI_Comm comm = MPI_COMM_NULL;
static int left, right;
static char *send_left, *send_right, *receive_left, *receive_right;

#define TRY(call) do { int code_ = (call); if (code_ != MPI_SUCCESS) return code_; } while (0)

int reference_open(void) {
    int rank, size;
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    TRY(MPI_Comm_rank(comm, &rank));
    TRY(MPI_Comm_size(comm, &size));
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    char **const all[] = {&send_left, &send_right, &receive_left, &receive_right};
    for (int i = 0; i < 4; i++) {
        *all[i] = malloc((size_t)WINDOW * BANDWIDTH_BYTES);
        if (*all[i] == NULL) return MPI_ERR_NO_MEM;
        /* Not zero: a compiler makes calloc of malloc and zeroing, and untouched pages all read from one. */
        memset(*all[i], 1, (size_t)WINDOW * BANDWIDTH_BYTES);
    }
    return MPI_SUCCESS;
}

static int ring(int iterations) {
    for (int i = 0; i < iterations; i++) {
        MPI_Request requests[4];
        TRY(MPI_Irecv(receive_left, LATENCY_BYTES, MPI_BYTE, left, TO_RIGHT, comm, &requests[0]));
        TRY(MPI_Irecv(receive_right, LATENCY_BYTES, MPI_BYTE, right, TO_LEFT, comm, &requests[1]));
        TRY(MPI_Isend(send_left, LATENCY_BYTES, MPI_BYTE, left, TO_LEFT, comm, &requests[2]));
        TRY(MPI_Isend(send_right, LATENCY_BYTES, MPI_BYTE, right, TO_RIGHT, comm, &requests[3]));
        TRY(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    }
    return MPI_SUCCESS;
}

static int bandwidth(int iterations, int sync) {
    for (int i = 0; i < iterations; i++) {
        MPI_Request requests[4 * WINDOW];
        int n = 0;
        for (int j = 0; j < WINDOW; j++) {
            size_t at = (size_t)j * BANDWIDTH_BYTES;
            TRY(MPI_Irecv(receive_left + at, BANDWIDTH_BYTES, MPI_BYTE, left, TO_RIGHT, comm, &requests[n++]));
            TRY(MPI_Irecv(receive_right + at, BANDWIDTH_BYTES, MPI_BYTE, right, TO_LEFT, comm, &requests[n++]));
        }
        for (int j = 0; j < WINDOW; j++) {
            size_t at = (size_t)j * BANDWIDTH_BYTES;
            TRY(MPI_Isend(send_left + at, BANDWIDTH_BYTES, MPI_BYTE, left, TO_LEFT, comm, &requests[n++]));
            TRY(MPI_Isend(send_right + at, BANDWIDTH_BYTES, MPI_BYTE, right, TO_RIGHT, comm, &requests[n++]));
        }
        TRY(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
        if (sync) TRY(MPI_Barrier(comm));
    }
    return MPI_SUCCESS;
}

static int allreduce(int iterations) {
    double *value = (double *)send_left;
    *value = 0.0;
    for (int i = 0; i < iterations; i++) {
        TRY(MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_SUM, comm));
    }
    return MPI_SUCCESS;
}

int reference_run(enum reference_kernel kernel, int iterations) {
    if (send_left == NULL) return MPI_ERR_BUFFER;
    switch (kernel) {
    case REFERENCE_RING: return ring(iterations);
    case REFERENCE_BANDWIDTH: return bandwidth(iterations, 0);
    case REFERENCE_BW_SYNC: return bandwidth(iterations, 1);
    case REFERENCE_ALLREDUCE: return allreduce(iterations);
    default: return MPI_ERR_ARG;
    }
}

int reference_close(void) {
    char **const all[] = {&send_left, &send_right, &receive_left, &receive_right};
    for (int i = 0; i < 4; i++) {
        free(*all[i]);
        *all[i] = NULL;
    }
    return MPI_Comm_free(&comm);
}
