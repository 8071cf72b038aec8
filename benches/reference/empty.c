/* An MPI program that does nothing: the yardstick for what a rank of Tailback adds in memory. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    sleep(60);
    MPI_Finalize();
    return 0;
}
