fn a() {

    two();
}
