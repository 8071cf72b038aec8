/* A ping-pong as plainly as MPI allows: what a user would write to see what their MPI can do.
 *   mpicc -O3 pingpong.c -o pingpong && mpirun -n 2 ./pingpong
 * Rank 0 prints a line for each size: bytes, and the microseconds of one way. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 2000000 };

static char *sent, *received;

static void round_trips(int rank, int bytes, int count) {
    for (int i = 0; i < count; i++) {
        if (rank == 0) MPI_Send(sent, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(received, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(sent, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void measure(int rank, int bytes, int warm_up, int count) {
    round_trips(rank, bytes, warm_up);
    double start = MPI_Wtime();
    round_trips(rank, bytes, count);
    double seconds = MPI_Wtime() - start;
    if (rank == 0) printf("%d %.4f\n", bytes, 1e6 * seconds / count / 2);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sent = malloc(LARGEST);
    received = malloc(LARGEST);
    if (size != 2 || sent == NULL || received == NULL) {
        fprintf(stderr, "pingpong: needs two ranks, and 4 MB on each\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(sent, 1, LARGEST);
    memset(received, 2, LARGEST);
    measure(rank, 8, 10000, 100000);
    measure(rank, LARGEST, 50, 500);
    MPI_Finalize();
    return 0;
}
