/* The reference loops on their own: time per iteration of each, p10 and median over batches, on rank 0.
 *   mpicc -O3 loops.c main.c -o reference && mpirun -n 2 ./reference [batches] */
#include "loops.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    int iterations;
} kernels[REFERENCE_KERNELS] = {
    {"ring 8 B", 2000}, {"BW 128 KiB x 8", 10}, {"BW+Sync 128 KiB x 8", 10}, {"allreduce 8 B", 2000}};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void give_up(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "reference: %s: %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv) {
    int rank, code;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int batches = argc > 1 ? atoi(argv[1]) : 200;
    if ((code = reference_open()) != 0) give_up("open", code);
    double *times = malloc(sizeof(double) * (size_t)(batches > 0 ? batches : 1));
    if (times == NULL || batches < 1) give_up("the number of batches", MPI_ERR_ARG);
    for (int k = 0; k < REFERENCE_KERNELS; k++) {
        for (int b = -1; b < batches; b++) { /* the first one is the warm-up */
            MPI_Barrier(MPI_COMM_WORLD);
            double start = seconds();
            if ((code = reference_run(k, kernels[k].iterations)) != 0) give_up(kernels[k].name, code);
            if (b >= 0) times[b] = (seconds() - start) / kernels[k].iterations;
        }
        qsort(times, (size_t)batches, sizeof(double), ascending);
        if (rank == 0)
            printf("%-20s p10 %10.3f us  median %10.3f us\n", kernels[k].name, 1e6 * times[batches / 10],
                   1e6 * times[batches / 2]);
    }
    free(times);
    reference_close();
    MPI_Finalize();
    return 0;
}
