/* Tailback's collectives around a ring as plainly as MPI allows, and MPI's own of the same vectors: MiB/s that a rank sends (bus
 * bandwidth), as the median over all iterations of all ranks. The sums are checked once.
 *   mpicc -O3 collectives.c -o collectives && mpirun -n 2 ./collectives [bytes [iterations]] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 20 };

static int rank, size;
static size_t words;
static uint64_t *own, *sum, *received;

static void fail(const char *what) {
    fprintf(stderr, "collectives: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* The part with this number, counted on around the ring. */
static size_t start(int part) { return words * (size_t)(part % size) / (size_t)size; }
static size_t length(int part) { return words * (size_t)(part % size + 1) / (size_t)size - start(part); }

static void exchange(const uint64_t *from, int sent, uint64_t *to, int part) {
    MPI_Request requests[2];
    MPI_Irecv(to, (int)(8 * length(part)), MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from + start(sent), (int)(8 * length(sent)), MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void reduce_scatter(void) {
    for (int step = 0; step < size - 1; step++) {
        int sent = size + rank - step, part = sent - 1;
        exchange(step == 0 ? own : sum, sent, received, part);
        for (size_t at = 0; at < length(part); at++)
            sum[start(part) + at] = own[start(part) + at] + received[at];
    }
}

static void allgather_from(int first) {
    for (int step = 0; step < size - 1; step++)
        exchange(sum, first - step, sum + start(first - step - 1), first - step - 1);
}

static void allgather(void) { allgather_from(size + rank); }

static void ring_allreduce(void) {
    reduce_scatter();
    allgather_from(size + rank + 1);
}

static void mpi_reduce_scatter(void) {
    MPI_Reduce_scatter_block(own, sum, (int)(words / (size_t)size), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_allgather(void) {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, sum, (int)(8 * words / (size_t)size), MPI_BYTE, MPI_COMM_WORLD);
}

static void mpi_allreduce(void) { MPI_Allreduce(own, sum, (int)words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD); }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const struct {
    const char *name, *side;
    int rounds;
    void (*run)(void);
} kernels[] = {
    {"reduce-scatter", "C", 1, reduce_scatter},         {"allgather", "C", 1, allgather},
    {"ring-allreduce", "C", 2, ring_allreduce},         {"reduce-scatter", "MPI", 1, mpi_reduce_scatter},
    {"allgather", "MPI", 1, mpi_allgather},             {"ring-allreduce", "MPI", 2, mpi_allreduce},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20;
    int iterations = argc > 2 ? atoi(argv[2]) : 1000;
    words = bytes / 8;
    if (words == 0 || words % (size_t)size != 0 || bytes > 1 << 30 || iterations < 1) fail("unusable arguments");
    uint64_t **const all[] = {&own, &sum, &received};
    for (int at = 0; at < 3; at++) {
        *all[at] = malloc(bytes);
        if (*all[at] == NULL) fail("no memory");
        memset(*all[at], 0, bytes);
    }
    for (size_t at = 0; at < words; at++) own[at] = (at + 1) * (uint64_t)(2 * rank + 1);
    double *times = malloc(sizeof(double) * (size_t)iterations);
    double *of_all = malloc(sizeof(double) * (size_t)iterations * (size_t)size);
    if (times == NULL || of_all == NULL) fail("no memory");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int at = -WARM_UP; at < iterations; at++) {
            double begun = MPI_Wtime();
            kernels[k].run();
            if (at >= 0) times[at] = MPI_Wtime() - begun;
        }
        if (kernels[k].rounds == 2)
            for (size_t at = 0; at < words; at++)
                if (sum[at] != (at + 1) * (uint64_t)size * (uint64_t)size) fail("a sum is wrong");
        MPI_Gather(times, iterations, MPI_DOUBLE, of_all, iterations, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            size_t count = (size_t)iterations * (size_t)size;
            qsort(of_all, count, sizeof(double), ascending);
            double sent = (double)kernels[k].rounds * (double)bytes * (size - 1) / size;
            printf("%s\t%s\t%.1f\n", kernels[k].name, kernels[k].side, sent / of_all[count / 2] / (1 << 20));
        }
    }
    MPI_Finalize();
    return 0;
}
